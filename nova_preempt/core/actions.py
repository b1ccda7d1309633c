# SPDX-License-Identifier: Apache-2.0

"""Choose how a preemptible server ends, on which terms, and what that frees.

One rule for whoever chooses victims and for whoever ends them.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar, Protocol, TypeVar

from nova_preempt.core import eligibility
from nova_preempt.core.model import Resources, Server
from nova_preempt.core.notice_period import NoticeRule


class ClassTerms(Protocol):
    """What of_class() reads and sets of a dataclass: a Server, or terms."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def class_name(self) -> str: ...

    @property
    def action(self) -> str: ...

    @property
    def restore(self) -> bool: ...


TermsT = TypeVar("TermsT", bound=ClassTerms)

DELETE = "delete"
SHELVE = "shelve"
STOP = "stop"
MIGRATE = "migrate"

#: What a stopped server needs no more. All else is on the host still: its
#: disk, and what Nova frees of a deleted or offloaded server only.
_FREED_BY_STOP = frozenset(("VCPU", "MEMORY_MB"))

#: What servers have that hold nothing but processor time, memory and disk.
_PLAIN = _FREED_BY_STOP | {"DISK_GB"}


def default(actions: Sequence[str]) -> str:
    """Return what happens to servers that ask for nothing allowed.

    ``actions``: what the operator allows, [preemption]actions.
    """
    return next((a for a in actions if a != MIGRATE), DELETE)


def last_resort(action: str, actions: Sequence[str]) -> str:
    """Return what happens where it cannot be, or is not to be, migrated."""
    return default(actions) if action == MIGRATE else action


def choose(
    asked: str, actions: Sequence[str], *, pinned: bool = False) -> str:
    """Return the action of a server other than migrate.

    ``asked``: what its flavor says, "" for nothing. ``pinned``: whether it
    holds parts of its host that a stopped server keeps: then to stop it would
    not make room, and the next action in the operator's list is taken. Where
    he allows nothing else it is ``stop`` all the same.
    """
    plain = asked in actions and asked != MIGRATE
    action = asked if plain else default(actions)
    if action == STOP and pinned:
        return next(
            (a for a in _following(STOP, actions) if a != MIGRATE), STOP)
    return action


def of_class(server: TermsT, name: str) -> TermsT:
    """Return a server, or its terms, as of this class, "" if it has none.

    Who is of a class comes back: it is shelved, whatever its flavor says.
    """
    if name:
        return dataclasses.replace(
            server, class_name=name, action=SHELVE, restore=True)
    # Its flavor may name one that is none of the operator's any more.
    if server.class_name:
        return dataclasses.replace(server, class_name="")
    return server


def why_kept(server: ClassTerms, action: str) -> str:
    """Tell why a server must not end by an action, "" if it may.

    The operator may have taken shelve from the list since it was promised to
    come back.
    """
    return (
        f"it is of class {server.class_name}, and would not come back after "
        f"{action}" if server.class_name and action != SHELVE else "")


def why_no_classes(actions: Sequence[str]) -> str:
    """Tell why there can be no classes with these actions, "" if they can.

    :param actions: those that the operator allows, [preemption]actions
    """
    return (
        ""
        if SHELVE in actions
        else f"[preemption]actions is {', '.join(actions)}, with "
        f"[classes]enabled it must have {SHELVE}: servers of a class come "
        "back"
    )


def _following(action: str, actions: Sequence[str]) -> list[str]:
    """Return the others in the operator's list, those after it first."""
    if action not in actions:
        return list(actions)
    place = actions.index(action)
    return [*actions[place + 1:], *actions[:place]]


def call(action: str, vm_state: str) -> str | None:
    """Return the call of Nova's API that is next for a victim.

    One that is shelved is offloaded, whatever its action: that frees as much
    as to delete it, and leaves its owner the image. See
    eligibility.next_call().
    """
    if vm_state == "shelved":
        return "shelve_offload"
    return eligibility.next_call(action, vm_state)


def next_call(
    action: str, actions: Sequence[str], vm_state: str) -> str | None:
    """Return the call of Nova's API that is next on the way to an end.

    That of the action, or else of the next one in the operator's list for
    which there is one. Never ``stop`` in place of another: it would free less
    than was counted on. See call().
    """
    found = call(action, vm_state)
    if found is not None:
        return found
    for other in _following(action, actions):
        if other not in (MIGRATE, STOP):
            found = call(other, vm_state)
            if found is not None:
                return found
    return None


def leaving(action: str, vm_state: str) -> str:
    """Return the action after which nothing of a server is on its host.

    Its own, unless it would keep its disk there or is not possible now.
    """
    if action != STOP and eligibility.next_call(action, vm_state) is not None:
        return action
    shelved = eligibility.next_call(SHELVE, vm_state)
    return DELETE if shelved is None else SHELVE


def vacating(server: ClassTerms, action: str, vm_state: str) -> str:
    """Return the action by which a server leaves a host that is needed.

    It has to leave: one that is promised to come back is shelved also where
    the operator allows that no more.

    :param action: that of its terms
    """
    return leaving(SHELVE if why_kept(server, action) else action, vm_state)


def why_stays(server: ClassTerms, action: str, vm_state: str) -> str:
    """Tell why a server must not leave a host that is needed, "" if it may.

    In a state in which it cannot be shelved it would be deleted.
    """
    return why_kept(server, vacating(server, action, vm_state))


def frees(resource_class: str, action: str) -> bool:
    """Tell whether the end of a server frees what it has of a class."""
    return action != STOP or resource_class in _FREED_BY_STOP


def freed(resources: Resources, action: str) -> dict[str, int]:
    """Return what of a server's resources its end frees."""
    return {
        name: amount
        for name, amount in resources.items()
        if frees(name, action)
    }


def kept(resources: Resources, action: str) -> dict[str, int]:
    """Return what of a server's resources stays with it after its end."""
    gone = freed(resources, action)
    return {
        name: amount
        for name, amount in resources.items()
        if amount and name not in gone
    }


def is_plain(resource_classes: Sequence[str]) -> bool:
    """Tell whether these are things of which a stopped server frees some."""
    return _PLAIN.issuperset(resource_classes)


@dataclasses.dataclass(frozen=True, slots=True)
class EvictionTerms:
    """How one server ends.

    ``action`` is delete, shelve or stop. With ``restore`` it comes back once
    there is room. With ``migrate`` its flavor asks to be moved instead, if it
    can be.
    """

    action: str
    notice_s: int
    restore: bool
    migrate: bool = False


def terms_of(server: Server, actions: Sequence[str],
             notice: NoticeRule) -> EvictionTerms:
    """Return the terms of a server.

    ``actions``: what the operator allows, [preemption]actions.
    """
    action = choose(server.action, actions, pinned=server.pinned)
    asked = (server.action if server.action in actions else default(actions))
    return EvictionTerms(
        action, notice.length_s(server.notice_s),
        restore=server.restore and action == SHELVE, migrate=asked == MIGRATE
        and not eligibility.why_not_by(server, asked), )


def is_migrated_first(
    action: str, actions: Sequence[str], *, one_time: bool = False) -> bool:
    """Tell whether a victim is live-migrated where that is possible.

    Its own flavor asks for it, or the operator wants it of all. ``action``:
    of the victim. ``one_time``: whether it has a device that can be used once
    only.
    """
    return MIGRATE in (action, *actions[:1]) and (
        not eligibility.wastes_device(MIGRATE, one_time=one_time))
