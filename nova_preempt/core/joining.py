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
"""Space that others are giving up already: who comes later joins their end.

Until victims are gone they hold what was not taken from them. A server that
fits there needs no victims of its own. The host is one like any other, with
victims that cost nothing; so whatever else speaks against a host speaks
against this one too.
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses

from nova_preempt.core.capacity import missing
from nova_preempt.core.model import Candidate, Host, Refusal, Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """What the victims of one decision give up on a host, for nobody yet.

    ``notice_s``: how much of their notice is left.
    """

    decision_uuid: str
    resources: Resources
    notice_s: float = 0.0


def join(
    request: Resources,
    host: Host,
    endings: Iterable[Ending],
    waiting: Iterable[Resources] = (),
    longest_notice_s: float = float("inf"),
) -> tuple[str, ...]:
    """Return the uuids of the decisions whose end makes room; () = none.

    Of those whose notice is over in time, the ones that end first, and none
    that can be spared.

    :param host: its candidates do not count
    :param waiting: what others ask for who wait for room on this host
    :param longest_notice_s: how long the request can wait
    """
    usable = sorted(
        (ending for ending in endings if ending.notice_s <= longest_notice_s),
        key=lambda ending: (ending.notice_s, ending.decision_uuid),
    )
    total = dict(request)
    for resources in waiting:
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    if not _fits(request, total, host, usable):
        return ()
    # The last ones first: whoever ends early is worth more.
    for ending in reversed(usable):
        rest = [other for other in usable if other is not ending]
        if _fits(request, total, host, rest):
            usable = rest
    return tuple(ending.decision_uuid for ending in usable)


def _fits(
    request: Resources,
    total: Resources,
    host: Host,
    endings: list[Ending],
) -> bool:
    """Say whether there is room for the total once these are gone.

    The host must take the request itself, in one piece; what others ask for
    it has been found to take before.
    """
    after = dataclasses.replace(
        host,
        candidates=tuple(
            Candidate(ending.decision_uuid, ending.resources, 0)
            for ending in endings
        ),
    )
    if isinstance(missing(request, after), Refusal):
        return False
    return all(
        host.used.get(name, 0)
        + amount
        - sum(ending.resources.get(name, 0) for ending in endings)
        <= host.inventories[name].capacity
        for name, amount in total.items()
        if name in host.inventories
    )
