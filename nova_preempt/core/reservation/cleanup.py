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

"""What becomes of servers whose reservation is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import enum

from nova_preempt.core import eligibility
from nova_preempt.core import ending
from nova_preempt.core.reservation import model

#: How often one that was told to end is told again.
ASK_AGAIN_S = 10

#: How long after its hosts were found free servers are still looked for: one
#: that was being scheduled at the end may come after that.
LATE_S = 120

#: After this share of the time a server that cannot be shelved is deleted.
_LATE = 0.5

#: After this share a server that could not be shelved is deleted, too, where
#: another reservation needs its host.
_LAST = 0.9


class Fate(enum.Enum):
    """What becomes of a server."""

    END = "end"
    STAY = "stay"  # it has no business there: whoever put it there knows why
    PASS = "pass"  # it is none of this reservation's


class Step(enum.Enum):
    """What to do next for a reservation that is over."""

    WAIT = "wait"
    END = "end"  # its servers
    RELEASE = "release"  # its hosts, whatever is left there


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """What is found on its hosts.

    :ivar left: whether servers of it are still there
    :ivar coming: whether a server has space there and is not there yet
    :ivar dark: whether hosts of it are in a cell that cannot be read
    :ivar asked_s: how long ago it was looked after first
    """

    left: bool
    coming: bool = False
    dark: bool = False
    asked_s: float = 0.0


def fate(
    reservation: model.Reservation,
    host: model.Assignment,
    named: Collection[str],
    running: Mapping[str, model.Reservation],
    *,
    preemptible: bool,
) -> Fate:
    """Say what becomes of a server on a host of a reservation.

    :param named: the ids of the reservations that it names
    :param running: others that have started, by their ids
    """
    if reservation.uuid not in named:
        if host.status == model.LOST or preemptible:
            return Fate.PASS
        return Fate.STAY
    if any(_has(running.get(uuid), host.host) for uuid in named):
        return Fate.PASS
    return Fate.END


def _has(reservation: model.Reservation | None, host: str) -> bool:
    return (
        reservation is not None
        and reservation.status in model.OPEN
        and host in reservation.held
    )


def step(state: State, timeout_s: float) -> Step:
    """Return what is to be done next.

    :param timeout_s: how long servers may take to end
    """
    if state.dark:
        return Step.WAIT
    if state.asked_s >= timeout_s or not (state.left or state.coming):
        return Step.RELEASE
    if state.left or spent(state, timeout_s) >= _LATE:
        return Step.END
    return Step.WAIT


def spent(state: State, timeout_s: float) -> float:
    """Return which share of their time servers have had."""
    return state.asked_s / timeout_s


def needed(near: Iterable[model.Reservation]) -> frozenset[str]:
    """Return the hosts of reservations that have begun, or are prepared."""
    return frozenset(name for each in near for name in each.held)


def call(
    end_action: str,
    vm_state: str,
    task_state: str | None,
    asked_s: float | None = None,
    *,
    spent: float = 0.0,
    needed: bool = False,
    is_kept: bool = False,
) -> str:
    """Return the call of Nova's API that ends a server, '' for none now.

    Nova shelves no server that is resized or rescued: that is confirmed, or
    taken back, first. One that is being built or in error may come to a state
    in which it can be shelved until half of the time is spent, and is deleted
    then. Near the end of the time a server that could not be shelved is
    deleted where its host is needed: its owner may rescue it again and again,
    and Nova may refuse to shelve it. No server is deleted instead of shelved
    while Nova shelves or moves it, and none at all that an administrator has
    locked.

    :param end_action: delete or shelve
    :param asked_s: how long ago it was asked for, None if it was not
    :param spent: see spent()
    :param needed: whether another reservation needs the host
    :param is_kept: whether an administrator has locked it
    """
    found = eligibility.next_call(end_action, vm_state)
    was_tried = asked_s is not None or task_state is not None
    if _may_delete(found, spent, needed=needed and was_tried) and (
        task_state not in ending.SHELVING | ending.MOVING
    ):
        found = "force_delete"
    if found == "force_delete":
        if is_kept or task_state in ending.DELETING:
            return ""
    elif task_state is not None:
        return ""
    if asked_s is not None and asked_s < ASK_AGAIN_S:
        return ""
    return found or ""


def _may_delete(next_call: str | None, spent: float, *, needed: bool) -> bool:
    """Whether a server may be deleted that was to be shelved.

    :param next_call: the call that would bring it nearer to that
    :param needed: whether it could not be shelved though its host is needed
    """
    if next_call is None:
        return spent >= _LATE
    # What is shelved already has only to be offloaded.
    return (
        needed
        and spent >= _LAST
        and next_call not in (eligibility.THERE, "shelve_offload")
    )


def outcome(
    status: str, left: Iterable[tuple[str, str, str]], timeout_s: float
) -> Mapping[str, str]:
    """Return status and reasons of one whose hosts are released.

    :param left: (uuid, vm_state, host) of servers that are still there
    """
    left = list(left)
    if not left:
        return {"status": status}
    said = f"servers did not leave in {timeout_s} s: "
    texts = [(f"{uuid} ({state})", host) for uuid, state, host in left]
    return {
        "status": model.ERROR,
        "reason": said
        + ", ".join(f"{text} on {host}" for text, host in texts),
        "public_reason": said + ", ".join(text for text, _host in texts),
    }
