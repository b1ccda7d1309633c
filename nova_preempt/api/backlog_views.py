# SPDX-License-Identifier: Apache-2.0

"""JSON views of waiting requests."""

import dataclasses

from nova_preempt.api import backlog_schemas as schemas
from nova_preempt.api import views
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import redaction

# What a request waits for, in words. The rest is about hosts of the cloud.
_PLAIN = ('code', 'text')


def listed(item, details=False):
    """A backlog_model.Request as JSON, as far as lists have it.

    :param details: whether what it waits for is shown with numbers of hosts
    """
    in_order = item.state in backlog_model.IN_ORDER
    return views.shown(
        item, schemas.LISTED,
        {'id': 'uuid', 'status': 'state', 'class': 'class_name'},
        flavors=[views.shown(flavor, schemas.FLAVOR, {'id': 'flavor_id'},
                             resources=dict(flavor.resources))
                 for flavor in item.alternatives],
        priorities=item.priorities and dataclasses.asdict(item.priorities),
        waits_for={name: value for name, value in item.waits_for.items()
                   if in_order and (details or name in _PLAIN)},
        position=item.position if in_order else None,
        estimate_s=item.estimate_s if in_order else None,
        servers=[views.shown(server, schemas.SERVER,
                             {'id': 'uuid', 'status': 'state'})
                 for server in item.servers])


def request(item, history, details=False):
    """The same with all of it.

    :param history: [backlog_model.Change]
    """
    return {**listed(item, details),
            'body': redaction.without_secrets(item.body),
            'history': [views.shown(change, schemas.CHANGED,
                                    {'status': 'state'})
                        for change in history]}
