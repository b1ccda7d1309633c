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
"""Which shelved victims come back next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import enum

from nova_preempt.core import capacity
from nova_preempt.core.model import Resources

LONGEST_S = 3600

#: How long one that was asked to come counts as coming without a look, and
#: how long it is between two looks at one.
LOOK_S = 60

#: How long a server that is offloaded may still have its host. Nova takes it
#: away last, from one that has come back meanwhile, too; never where its
#: compute died just before.
LET_GO_S = 600

_COMING = frozenset(("unshelving", "spawning"))

# Who is offloaded has no host; who is not is started where it is.
_SHELVED = frozenset(("SHELVED", "SHELVED_OFFLOADED"))
_DELETED = frozenset(("SOFT_DELETED", "DELETED"))


# What is asked for first of one that is shelved in the end.
_TOWARDS_SHELVED = frozenset(
    ("shelve", "confirm_resize", "unrescue", "live_migrate")
)


class Turn(enum.Enum):
    """What is to be done about one that is to come back."""

    ASKED = "asked"  # was asked to come; its next try is later
    NOW = "now"  # may be asked to come
    TOO_LATE = "too late"  # there was no room for it for too long


class Sight(enum.Enum):
    """What a look at one shows."""

    GONE = "gone"  # its owner has deleted it
    BACK = "back"
    COMING = "coming"
    BUSY = "busy"  # something else is being done with it
    SHELVED = "shelved"


@dataclasses.dataclass(frozen=True)
class Shelved:
    """One that has given way, and what it needs to come back."""

    uuid: str
    resources: Resources


def is_shelved_by(asked: str) -> bool:
    """Tell whether one that is shelved was shelved to give way.

    What its owner has shelved, before it was chosen or in answer to its
    notice, was to be offloaded at most.

    :param asked: what Nova was asked for first
    """
    return asked in _TOWARDS_SHELVED


def comes_back(restore: bool, asked: str) -> bool:
    """Tell whether one that is shelved comes back by itself.

    :param restore: whether its terms say so
    :param asked: see is_shelved_by()
    """
    return restore and is_shelved_by(asked)


def pause_s(interval_s: int, tries: int) -> int:
    """How long after a try the next one is, with so many tries before it."""
    # Beyond that many doublings the longest is reached whatever it began at.
    return min(LONGEST_S, interval_s << min(tries, 12))


def to_next_s(left_s: float, pause_s: float) -> float:
    """Return how long it is until the next try.

    Not longer than it ever is, by more than clocks of engines may differ:
    else the clock was set back since that time was written.

    :param left_s: by the clock
    :param pause_s: how long it is from one try to the next
    """
    return left_s if left_s <= pause_s + LOOK_S else 0


def turn(
    tries: int, to_next_s: float, ended_s: float, timeout_s: float
) -> Turn:
    """Say whose turn it is.

    :param tries: how often it was asked to come
    :param to_next_s: how long it is until its next try, if it was
    :param ended_s: how long ago it has given way
    :param timeout_s: for how long room is looked for
    """
    if tries and to_next_s > 0:
        return Turn.ASKED
    return Turn.NOW if ended_s < timeout_s else Turn.TOO_LATE


def is_just_asked(pause_s: float, to_next_s: float) -> bool:
    """Whether it was asked to come so lately that Nova may not show it.

    :param pause_s: how long it is from that try to the next
    """
    return pause_s - to_next_s <= LOOK_S


def is_held(
    status: str | None, task_state: str | None, host: str | None
) -> bool:
    """Whether it is offloaded, and its host has not let go of it yet."""
    return (
        status == "SHELVED_OFFLOADED"
        and task_state is None
        and host is not None
    )


def has_run_since(
    launched_at: datetime.datetime | None,
    launched_before: datetime.datetime | None,
    ended_at: datetime.datetime,
) -> bool:
    """Whether it has been started anew since it gave way.

    The clocks of computes and ours need not agree, so that a launch that was
    known before counts as none.

    :param launched_at: when it was launched last, by Nova's record
    :param launched_before: the same as it was chosen to give way
    """
    return (
        launched_at is not None
        and launched_at != launched_before
        and launched_at > ended_at
    )


def seen(
    status: str | None,
    task_state: str | None,
    host: str | None,
    held_s: float,
    *,
    has_run: bool = False,
) -> Sight:
    """Say what Nova shows.

    :param status: None if there is no such server
    :param held_s: for how long it was seen to be is_held()
    :param has_run: see has_run_since()
    """
    if status is None:
        return Sight.GONE
    if task_state is not None:
        return Sight.COMING if task_state in _COMING else Sight.BUSY
    if is_held(status, task_state, host) and held_s < LET_GO_S:
        return Sight.BUSY
    if status in _DELETED:
        return Sight.GONE
    if has_run:
        # It was back, and its owner has shelved it again.
        return Sight.BACK
    return Sight.SHELVED if status in _SHELVED else Sight.BACK


def choose(
    waiting: Iterable[Shelved],
    coming: Iterable[Shelved],
    room: Mapping[str, Resources],
    most: int,
) -> list[str]:
    """Those that may be asked to come now, in this order.

    1. What is on its way, and holds nothing yet, takes its room first.
    2. Then each that waits, the first before all others, takes room on the
       first host that has it. One that finds none lets others pass.
    3. No more than ``most`` are on their way at once.

    Where they come to the scheduler decides: this only keeps more from being
    asked than there is room for.

    :param room: what is free, by host
    """
    free = {host: dict(resources) for host, resources in room.items()}
    on_their_way = 0
    for item in coming:
        _take(free, item.resources)
        on_their_way += 1
    chosen = []
    for item in waiting:
        if on_their_way >= most:
            break
        if _take(free, item.resources):
            chosen.append(item.uuid)
            on_their_way += 1
    return chosen


def _take(free: dict[str, dict[str, int]], resources: Resources) -> bool:
    for host in sorted(free):
        if capacity.fits(resources, free[host]):
            free[host] = capacity.less(free[host], resources)
            return True
    return False
