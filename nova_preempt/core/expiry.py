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

"""Servers whose time is over: at a maximum run time, or after retention."""

from __future__ import annotations

import enum
from typing import Protocol

from nova_preempt.core import actions
from nova_preempt.core import eligibility
from nova_preempt.core import ending


class Server(eligibility.Server, actions.ClassTerms, Protocol):
    """What is asked of a server here."""


def limit_s(of_flavor: int | None, of_all: int) -> int:
    """How long a server may run, 0 for as long as it likes.

    :param of_flavor: what its flavor says, None if nothing
    :param of_all: what the operator says of all
    """
    return of_all if of_flavor is None else of_flavor


def left_s(
    server: Server, limit_s: int, action: str, uptime_us: int
) -> int | None:
    """In how many seconds a server has run for as long as it may.

    None if it may run on, or cannot end as it is, or must not: see
    actions.why_kept(). No lock of its owner lengthens that, whoever's locks
    count otherwise.

    :param action: what its terms say: delete, shelve or stop
    """
    if (
        limit_s <= 0
        or server.vm_state not in eligibility.RUNNING
        or actions.why_kept(server, action)
        or eligibility.Rules().why_not(server, action)
    ):
        return None
    return max(0, limit_s - uptime_us // 1_000_000)


def is_over(
    server: Server, limit_s: int, action: str, uptime_us: int
) -> bool:
    """Whether a server has run for as long as it may, and can end.

    See left_s().
    """
    return left_s(server, limit_s, action, uptime_us) == 0


class Stopped(enum.Enum):
    """The next action for a victim that was stopped by a preemption."""

    NOTHING = "nothing"
    DELETE = "delete"
    #: it runs again: it needs what was taken from it
    GIVE_BACK = "give back"
    #: Nova knows it no more
    GONE = "gone"
    #: it was shelved since, and has nothing on its host
    SHELVED = "shelved"
    #: it is kept for longer than its time: see of_stopped()
    NOT_OURS = "not ours"


def of_stopped(
    seen: ending.Seen | None, *, kept: bool, ours: bool
) -> Stopped:
    """Return what is to be done about a victim that was stopped.

    An administrator may have unlocked and started it. One that runs is never
    deleted, however long ago it was stopped. Nor is one that somebody has
    unlocked, or locked for a reason of their own.

    :param seen: None if Nova knows it no more
    :param kept: see is_kept()
    :param ours: whether it is locked for the reason for which it was stopped
    """
    if seen is None:
        return Stopped.GONE
    if seen.task_state is not None:
        return Stopped.NOTHING
    if seen.vm_state in eligibility.RUNNING:
        return Stopped.GIVE_BACK
    if ending.is_offloaded(seen):
        return Stopped.SHELVED
    if kept:
        return Stopped.NOTHING
    return Stopped.DELETE if ours else Stopped.NOT_OURS


def is_kept(stopped_s: float, retention_s: int) -> bool:
    """Whether a victim that was stopped so long ago is not deleted yet."""
    return stopped_s < retention_s
