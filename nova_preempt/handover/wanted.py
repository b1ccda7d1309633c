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

"""Whether the requests that servers end for still exist."""

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core import wanted as core

LOG = logging.getLogger(__name__)


class Wanted:
    """For as long as the victims of some decisions are on their way out.

    :param poller: a nova_preempt.handover.request_poller.RequestPoller
    :param decisions: db.Decisions
    """

    def __init__(self, poller, decisions):
        self._poller = poller
        self._purposes = {decision.uuid: _purpose(decision)
                          for decision in decisions}
        self._servers = [decision.server_uuid for decision in decisions
                         if decision.server_uuid]
        poller.add(self._servers)

    def close(self):
        """Ask for nobody any more."""
        self._poller.remove(self._servers)

    def look(self):
        """{uuid of a decision: why nobody needs the space of its victims}."""
        found = {uuid: self._why_not(uuid) for uuid in self._purposes}
        return {uuid: why for uuid, why in found.items() if why}

    def is_certain(self, decision):
        """Whether something may be done to a victim of this decision now."""
        return self._why_not(decision.uuid) == ''

    def _why_not(self, uuid):
        """Why nobody needs it, '' if it is needed, None if nobody knows."""
        try:
            return core.why_not(self._purposes[uuid], self._poller,
                                self._poller.now())
        except (nova_api.NovaError, db_exc.DBError) as exc:
            LOG.warning('Nobody is asked to end: %s', exc)
            return None


def _purpose(decision):
    record = decision.record
    return core.Purpose(
        decision.operation, decision.server_uuid,
        record.get('asked_by', {}).get('reservation_id', ''),
        record.get('node', ''),
        frozenset(provider for victim in decision.victims
                  for provider in victim.allocations))
