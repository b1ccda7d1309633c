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
"""Whether the space that victims give way for is still held."""

from oslo_log import log as logging

from nova_preempt.cloud import placement as placement_api
from nova_preempt.handover import claim

LOG = logging.getLogger(__name__)


def is_certain(placement, decisions):
    """Whether it is; False if nobody knows.

    :param placement: a nova_preempt.cloud.placement.Placement
    :param decisions: db.Decisions, CLAIMED
    :raises ClaimLost: a stand-in has lost it: victims would end in vain
    """
    for decision in decisions:
        uuid = claim.stand_in(decision)
        if not uuid:
            continue
        try:
            consumer = placement.get_consumer(uuid)
        except placement_api.PlacementError as exc:
            LOG.warning('Nobody is asked to end: %s', exc)
            return False
        if not consumer.allocations:
            raise claim.ClaimLost(
                f'consumer {uuid}, which held the space for server '
                f'{decision.server_uuid}, has lost it while the victims had '
                'their notice')
    return True
