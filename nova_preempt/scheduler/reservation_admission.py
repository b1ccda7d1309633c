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
"""Requests for a reservation that they may not use are told so.

The filter alone could only say that no host was valid.
"""

from nova import exception
import nova.conf
from oslo_log import log as logging

from nova_preempt.cloud import request
from nova_preempt.reservation import leases

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def admit(spec_obj, instance_uuids, get_operation):
    """Refuse a request that names a reservation which it may not use.

    A server that exists already and whose reservation is over, or was never
    there, is moved or unshelved like any other: it can not get rid of the
    hint. The hint is taken out of spec_obj then.

    :param get_operation: returns which one it is
    :raises NoValidHost: says why
    """
    lease_ids = request.reservations(spec_obj)
    if not lease_ids or not leases.is_used(CONF):
        return
    answer = leases.current(CONF).answer(lease_ids, spec_obj.project_id)
    if not answer.reason:
        return
    server_uuid = instance_uuids[0] if instance_uuids else None
    if answer.is_void and server_uuid and get_operation() != 'create':
        LOG.info('Server %(server)s is placed without its reservation: '
                 '%(reason)s', {'server': server_uuid,
                                'reason': answer.reason})
        spec_obj.scheduler_hints.pop(request.RESERVATION)
        return
    LOG.info('Server %(server)s is refused: %(reason)s',
             {'server': server_uuid, 'reason': answer.reason})
    raise exception.NoValidHost(reason=answer.reason)
