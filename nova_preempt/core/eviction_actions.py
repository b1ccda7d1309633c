# SPDX-License-Identifier: Apache-2.0

"""Chooses how a preemptible server is evicted, and what that frees.

The search for victims and their eviction use the same rules.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar, Protocol, TypeVar

from nova_preempt.core import eligibility
from nova_preempt.core.model import PreemptibleServer, Resources
from nova_preempt.core.notice_period import NoticeRule


class ClassEvictionTerms(Protocol):
    """The fields that of_class() reads and sets, of a server or its terms."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def class_name(self) -> str: ...

    @property
    def action(self) -> str: ...

    @property
    def restore(self) -> bool: ...


TermsT = TypeVar("TermsT", bound=ClassEvictionTerms)

DELETE = "delete"
SHELVE = "shelve"
STOP = "stop"
MIGRATE = "migrate"

#: The resources that a stop frees. Its disk remains on the host, and so do
#: resources that Nova frees only for a deleted or offloaded server.
_FREED_BY_STOP = frozenset(("VCPU", "MEMORY_MB"))

#: The resources of servers without devices or pinned cores.
_PLAIN = _FREED_BY_STOP | {"DISK_GB"}


def default(actions: Sequence[str]) -> str:
    """Return the action for servers whose flavor asks for none allowed.

    ``actions``: the actions that the operator allows, [preemption]actions.
    """
    return next((a for a in actions if a != MIGRATE), DELETE)


def last_resort(action: str, actions: Sequence[str]) -> str:
    """Return the action for a server that cannot be, or is not, migrated."""
    return default(actions) if action == MIGRATE else action


def choose(
    asked: str, actions: Sequence[str], *, pinned: bool = False) -> str:
    """Return the action of a server other than migrate.

    ``asked``: the action that its flavor asks for, "" for none. ``pinned``:
    whether it holds resources of its host that a stopped server keeps: a stop
    would not free them, and the next action in the operator's list is used. If
    the operator allows nothing else it is ``stop`` all the same.
    """
    plain = asked in actions and asked != MIGRATE
    action = asked if plain else default(actions)
    if action == STOP and pinned:
        return next(
            (a for a in _following(STOP, actions) if a != MIGRATE), STOP)
    return action


def of_class(server: TermsT, name: str) -> TermsT:
    """Return a server, or its terms, as a member of a class, "" for none.

    A server of a class is shelved and returned, whatever its flavor says.
    """
    if name:
        return dataclasses.replace(
            server, class_name=name, action=SHELVE, restore=True)
    # Its flavor may name one that is none of the operator's any more.
    if server.class_name:
        return dataclasses.replace(server, class_name="")
    return server


def why_kept(server: ClassEvictionTerms, action: str) -> str:
    """Return why a server must not end by an action, "" if it may.

    The operator may have removed shelve from the list after the class promised
    a return.
    """
    return (
        f"it has the class {server.class_name} and would not return after "
        f"{action}" if server.class_name and action != SHELVE else "")


def why_no_classes(actions: Sequence[str]) -> str:
    """Return why these actions rule out classes of service, "" if they do not.

    :param actions: the actions that the operator allows, [preemption]actions
    """
    return "" if SHELVE in actions else (
        f"[preemption]actions is {', '.join(actions)}; with [classes]enabled "
        f"it must include {SHELVE}, so that servers of a class can return")


def _following(action: str, actions: Sequence[str]) -> list[str]:
    """Return the other actions of the operator, those after this one first."""
    if action not in actions:
        return list(actions)
    place = actions.index(action)
    return [*actions[place + 1:], *actions[:place]]


def call(action: str, vm_state: str) -> str | None:
    """Return the next call of Nova's API for a victim.

    A shelved server is offloaded, whatever its action: that frees as much as a
    deletion, and its owner keeps the image. See eligibility.next_call().
    """
    if vm_state == "shelved":
        return "shelve_offload"
    return eligibility.next_call(action, vm_state)


def next_call(
    action: str, actions: Sequence[str], vm_state: str) -> str | None:
    """Return the next call of Nova's API to evict a victim.

    The call of its action, or of the next action in the operator's list that
    has a call. Never ``stop`` instead of another action: it would free less
    than was planned. See call().
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
    """Return the action after which a server holds nothing on its host.

    Its own action, unless that would keep its disk there or is not possible
    now.
    """
    if action != STOP and eligibility.next_call(action, vm_state) is not None:
        return action
    shelved = eligibility.next_call(SHELVE, vm_state)
    return DELETE if shelved is None else SHELVE


def vacating(server: ClassEvictionTerms, action: str, vm_state: str) -> str:
    """Return the action that moves a server off a host that must be empty.

    A server that is promised to return is shelved even if the operator does
    not allow that any more.

    :param action: the action of its terms
    """
    return leaving(SHELVE if why_kept(server, action) else action, vm_state)


def why_stays(server: ClassEvictionTerms, action: str, vm_state: str) -> str:
    """Return why a server must not be moved off its host, "" if it may.

    In a state in which it cannot be shelved it would be deleted.
    """
    return why_kept(server, vacating(server, action, vm_state))


def frees(resource_class: str, action: str) -> bool:
    """Return whether the end of a server frees its resources of a class."""
    return action != STOP or resource_class in _FREED_BY_STOP


def freed(resources: Resources, action: str) -> dict[str, int]:
    """Return the resources that the end of a server frees."""
    return {name: amount for name, amount in resources.items()
            if frees(name, action)}


def kept(resources: Resources, action: str) -> dict[str, int]:
    """Return the resources that a server holds after its end."""
    return {name: amount for name, amount in resources.items()
            if amount and not frees(name, action)}


def is_plain(resource_classes: Sequence[str]) -> bool:
    """Return whether these are VCPU, MEMORY_MB and DISK_GB only."""
    return _PLAIN.issuperset(resource_classes)


@dataclasses.dataclass(frozen=True, slots=True)
class EvictionTerms:
    """Terms of the eviction of a server.

    ``action`` is delete, shelve or stop. ``restore``: whether it is unshelved
    once capacity is free. ``migrate``: whether its flavor asks for a live
    migration instead, if that is possible.
    """

    action: str
    notice_s: int
    restore: bool
    migrate: bool = False


def terms_of(server: PreemptibleServer, actions: Sequence[str],
             notice: NoticeRule) -> EvictionTerms:
    """Return the eviction terms of a server.

    ``actions``: the actions that the operator allows, [preemption]actions.
    """
    action = choose(server.action, actions, pinned=server.pinned)
    asked = (server.action if server.action in actions else default(actions))
    return EvictionTerms(
        action, notice.length_s(server.notice_s),
        restore=server.restore and action == SHELVE, migrate=asked == MIGRATE
        and not eligibility.why_not_by(server, asked), )


def is_migrated_first(
    action: str, actions: Sequence[str], *, one_time: bool = False) -> bool:
    """Return whether a victim is live-migrated if that is possible.

    Its own flavor asks for it, or the operator wants it for all. ``action``:
    the action of the victim. ``one_time``: whether it has a device that can be
    used only once.
    """
    return MIGRATE in (action, *actions[:1]) and (
        not eligibility.wastes_device(MIGRATE, one_time=one_time))
