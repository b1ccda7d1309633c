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

"""Whether victims may be looked for for a request."""

from __future__ import annotations

from nova_preempt.core.refusals import Why
from nova_preempt.core.scheduling.port import Cloud
from nova_preempt.core.scheduling.unanswered import NOT_ASKED
from nova_preempt.core.scheduling.unanswered import Silent


class Permission:
    """Of one request.

    :param may_ask: whether its rank lets it end servers at all
    :param silent: the hosts that did not answer
    :ivar refusal: why no preemption can serve it, '' if one may, as far as
        is known
    :ivar why: what kind of refusal that is
    """

    def __init__(
        self, cloud: Cloud, may_ask: bool, silent: Silent, refusal: str = ""
    ) -> None:
        self.refusal = refusal
        self.why = Why.REQUEST
        self._cloud = cloud
        self._may_ask = may_ask
        self._silent = silent
        self._has_asked = False

    def is_refused(self) -> bool:
        """Tell whether victims must not be looked for; asked only then."""
        if not self._may_ask:
            self.refusal = "a preemptible server never preempts"
        if not self.refusal and not self._silent.may_claim():
            self.withdraw(self._silent.reason or NOT_ASKED)
        if not self.refusal and not self._has_asked:
            self._has_asked = True
            self.refusal = self._cloud.objection()
        return bool(self.refusal)

    def withdraw(self, reason: str) -> None:
        """The cloud does not answer; hosts with room are still there."""
        self.refusal = reason
        self.why = Why.SERVICE
