# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Hosts that the cloud does not answer for, and the time they cost.

An error that comes at once costs next to nothing: the host is left out and
the next one is asked. A call that nobody answers takes as long as its time
limit, with Placement 60 s by default, so that time is bounded.
"""

from __future__ import annotations

from nova_preempt.core.scheduling.port import Unanswered

#: After so many seconds, two calls that nobody answers, no further host is
#: read: the request is decided by what is known.
READ_S = 120.0
#: After one more no host is claimed either.
CLAIM_S = 180.0

#: Stands for the list of all hosts where a host is named.
ALL_HOSTS = ""

#: Said of a host that is not read any more.
NOT_ASKED = "not asked, since other hosts took too long to answer"


class Silent:
    """The hosts that did not answer for one request, in all its passes.

    :ivar reasons: {uuid of a host: what was said instead of an answer}
    :ivar excluded: uuids of hosts that could not be claimed: the request does
        not go there any more
    """

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.excluded: set[str] = set()
        self._spent_s = 0.0

    def note(self, host: str, exc: Unanswered) -> None:
        """Note a question about a host that was not answered."""
        self.reasons[host] = str(exc)
        self._spent_s += exc.after_s

    def exclude(self, host: str, exc: Unanswered) -> None:
        """Note the same of a host that was about to be claimed."""
        self.note(host, exc)
        self.excluded.add(host)

    def answered(self, host: str) -> None:
        """Forget that a host did not answer earlier."""
        self.reasons.pop(host, None)

    @property
    def reason(self) -> str:
        """Return the first error, '' if all hosts answered."""
        return next(iter(self.reasons.values()), "")

    def may_read(self) -> bool:
        """Tell whether there is time left to ask about further hosts."""
        return self._spent_s < READ_S

    def may_claim(self) -> bool:
        """Tell whether there is time left to claim a host."""
        return self._spent_s < CLAIM_S
