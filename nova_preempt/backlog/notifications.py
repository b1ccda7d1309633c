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
"""What is told of requests on the bus, and in metrics."""

from oslo_utils import timeutils

from nova_preempt.handover import notifications

# Of the payload; see nova_preempt.handover.notifications.VERSION.
VERSION = '1.0'

_TIME = '%Y-%m-%dT%H:%M:%SZ'


class RequestNotifications:
    """Tells of requests. Nothing depends on anybody listening.

    :param conf: nova.conf.CONF
    :param host: the name of the host that this service runs on
    :param submit: calls a function with arguments, at once or later, so that
        nobody has to wait for the bus
    """

    def __init__(self, conf, host, submit=None):
        self._notifier = notifications.make_notifier(conf, host)
        self._submit = submit or (lambda call, *arguments: call(*arguments))

    def changed(self, request, old_state):
        """It is in another state.

        :param request: a core Request as it is now
        """
        emit = (self._notifier.error if request.state == 'failed'
                else self._notifier.info)
        self._submit(emit, {}, f'backlog.{request.state}',
                     make_payload(request, old_state))


def make_payload(request, old_state):
    """The payload of a notification, as its documented samples have it."""
    return {
        'version': VERSION,
        'request_id': request.uuid,
        'name': request.name,
        'project_id': request.project_id,
        'user_id': request.user_id,
        'class': request.class_name,
        'status': request.state,
        'old_status': old_state,
        'reason': request.reason,
        'count': request.count,
        'servers': [{'uuid': server.uuid, 'status': server.state}
                    for server in request.servers],
        'generated_at': f'{timeutils.utcnow():{_TIME}}',
    }
