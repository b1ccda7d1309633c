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

"""When victims may be asked to end, and when they are looked at again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from nova_preempt.core import eligibility
from nova_preempt.core.ending import Progress
from nova_preempt.core.ending import Seen

_T = TypeVar("_T", int, float)

#: How long after a look at a victim one may still act by it.
FRESH_S = 5.0

#: The shortest pause between two looks at a victim.
SHORTEST_S = 0.05
#: A pause is this share of what was waited already: no end is seen later than
#: by that.
_SHARE = 0.1


def notice_is_over(
    progress: Progress, seen: Seen | None, known: bool, now: float
) -> bool:
    """Tell whether it is late enough, or nobody needs more time."""
    if progress.acting_since is not None or now >= progress.notice_until:
        return True
    # With a task it may be on its way back.
    return known and (
        seen is None
        or (
            seen.vm_state not in eligibility.RUNNING
            and seen.task_state is None
        )
    )


def begin_at(notices_until: Iterable[_T]) -> _T:
    """Return when the victims of a request may be asked to end.

    No victim ends before the longest notice of all is over: until then the
    request can be cancelled, and nobody has ended in vain.

    ``notices_until``: when the notice of each is over, by one clock.
    """
    return max(notices_until)


def may_begin(
    victims: Iterable[tuple[Progress, Seen | None, bool]], now: float
) -> bool:
    """Tell whether the victims of a request may be asked to end.

    See begin_at(); sooner where nobody needs the time.

    ``victims``: of each what notice_is_over() takes.
    """
    return all(
        notice_is_over(progress, seen, known, now)
        for progress, seen, known in victims
    )


def is_fresh(read_at: float, now: float) -> bool:
    """Tell whether a look at a victim is so recent that one may act by it.

    ``read_at``: when it was read, which others may have done before.
    """
    return now - read_at <= FRESH_S


def pause_s(waited_s: float, interval_s: float) -> float:
    """Return how long to wait until victims are looked at again.

    Short at first, when much happens, then ever longer.

    ``waited_s``: since something was asked for last; ``interval_s``: the
    longest.
    """
    return min(interval_s, max(SHORTEST_S, waited_s * _SHARE))
