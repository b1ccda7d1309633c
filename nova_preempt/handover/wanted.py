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

"""Whether the servers that space is made for are wanted still."""

from oslo_log import log as logging

from nova_preempt.cloud import nova_api

LOG = logging.getLogger(__name__)


class Wanted:
    """For as long as the victims of some decisions are on their way out.

    :param poller: a nova_preempt.handover.request_poller.RequestPoller
    :param decisions: db.Decisions
    """

    def __init__(self, poller, decisions):
        self._poller = poller
        self._servers = [decision.server_uuid for decision in decisions
                         if decision.server_uuid]
        self._is_known = True
        poller.add(self._servers)

    def close(self):
        """Ask for nobody any more."""
        self._poller.remove(self._servers)

    def look(self):
        """The uuids of those that are not wanted any more, as a set."""
        try:
            gone = self._poller.unwanted(self._servers)
        except nova_api.NovaError as exc:
            LOG.warning('Nobody is asked to end: %s', exc)
            self._is_known = False
            return set()
        self._is_known = True
        return gone

    def is_certain(self, decision):
        """Whether something may be done to a victim of this decision."""
        return self._is_known or not decision.server_uuid
