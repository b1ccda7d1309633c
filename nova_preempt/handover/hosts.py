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
"""Whether the hosts of victims are up, as they were seen last."""

from oslo_log import log as logging

from nova_preempt.cloud import nova_api

LOG = logging.getLogger(__name__)

# So many victims of one host share a look.
_AGE_S = 1.0
# A host that was seen up so lately is handed over without another look.
_HANDOVER_AGE_S = 5.0


class Hosts:
    """For as long as the victims of some decisions are on their way out.

    :param is_up: see nova_preempt.cloud.host_services.host_is_up
    :param chosen: names of hosts that the scheduler has seen up
    :param chosen_at: when, or before, None: that is not known
    """

    def __init__(self, is_up, monotonic, chosen=(), chosen_at=None):
        self._is_up = is_up
        self._monotonic = monotonic
        # name of a host: (when, whether it is up)
        self._seen = {}
        if chosen_at is not None:
            self._seen = dict.fromkeys(chosen, (chosen_at, True))

    def known(self, host, max_age_s=_AGE_S):
        """Whether a host is up, None if it was not looked at lately."""
        if host not in self._seen:
            return None
        when, is_up = self._seen[host]
        return is_up if self._monotonic() - when <= max_age_s else None

    def look(self, host, server_uuid, max_age_s=_AGE_S):
        """Whether a host is up, None if nobody can tell.

        :param server_uuid: of a server there
        """
        known = self.known(host, max_age_s)
        if known is None:
            now = self._monotonic()
            try:
                known = self._is_up(server_uuid, host)
            except nova_api.NovaError as exc:
                LOG.warning('Nobody ends on host %(host)s: %(exc)s',
                            {'host': host, 'exc': exc})
                return None
            self._seen[host] = now, known
        return known

    def is_in_vain(self, end):
        """Whether the end of a victim begins on a host that is down.

        :param end: a nova_preempt.handover.ends.End
        """
        return not end.terms.for_good and (
            self.look(end.terms.host, end.uuid) is False)

    def is_lost(self, decision):
        """Whether the host of a decision went down while its victims ended.

        They would have ended for a server that nobody can build there.
        """
        return decision.server_uuid and self.look(
            decision.host, decision.victims[0].server_uuid,
            _HANDOVER_AGE_S) is False
