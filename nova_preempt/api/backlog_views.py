# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What of requests that wait is shown."""

import dataclasses

from nova_preempt.api import views
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import redaction

# What a request waits for, in words. The rest is about hosts of the cloud.
_PLAIN = ('code', 'text')


def listed(item, details=False):
    """A model.Request as JSON, as far as lists have it.

    :param details: whether what it waits for is shown with numbers of hosts
    """
    in_order = item.state in model.IN_ORDER
    return {
        'id': item.uuid,
        'name': item.name,
        'project_id': item.project_id,
        'user_id': item.user_id,
        'status': item.state,
        'reason': item.reason,
        'created_at': views.time(item.created_at),
        'updated_at': views.time(item.updated_at),
        'compute_version': item.compute_version,
        'count': item.count,
        'least_count': item.least_count,
        'flavors': [{'id': flavor.flavor_id, 'name': flavor.name,
                     'resources': dict(flavor.resources),
                     'preemptible': flavor.preemptible}
                    for flavor in item.alternatives],
        'ladder': item.ladder,
        'class': item.class_name,
        'priorities': item.priorities and dataclasses.asdict(item.priorities),
        'not_before': views.time(item.not_before),
        'not_after': views.time(item.not_after),
        'longest_wait_s': item.longest_wait_s,
        'comes_back': item.comes_back,
        'back_until': views.time(item.back_until),
        'most_returns': item.most_returns,
        'returns': item.returns,
        'waits_since': views.time(item.waits_since),
        'waits_for': {name: value for name, value in item.waits_for.items()
                      if in_order and (details or name in _PLAIN)},
        'position': item.position if in_order else None,
        'estimate_s': item.estimate_s if in_order else None,
        'servers': [{'id': server.uuid, 'status': server.state,
                     'since': views.time(server.since)}
                    for server in item.servers],
    }


def request(item, history, details=False):
    """The same with all of it.

    :param history: [model.Change]
    """
    return {**listed(item, details),
            'body': redaction.without_secrets(item.body),
            'history': [{'at': views.time(change.at), 'status': change.state,
                         'reason': change.reason} for change in history]}
