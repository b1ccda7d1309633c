# SPDX-License-Identifier: Apache-2.0
"""Server groups: which hosts the servers of several requests may share.

A request names a group by a scheduler hint, or has its own. Plans follow
Nova's filters: all servers of an affinity group are on one host, and a host
has no more servers of an anti-affinity group than the group allows. Soft
policies are left to Nova's weighers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
from typing import TypeGuard

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import reservation_rules

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"
#: The policies that filters enforce.
STRICT = (AFFINITY, ANTI_AFFINITY)


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A server group with a strict policy.

    :param uuid: of the group, or of the request that has its own group
    :param policy: one of STRICT
    :param most: of anti-affinity: the most servers on a host
    :param members: the uuids of its servers, deleted ones included
    :param elsewhere: whether some are on hosts that are not in use
    :param project_id: of its owner, '' if any project may use it
    """

    uuid: str
    policy: str
    most: int = 1
    members: frozenset[str] = frozenset()
    elsewhere: bool = False
    project_id: str = ""


def is_together(group: Group | None) -> TypeGuard[Group]:
    """Tell whether servers must be on one host by their group, if any."""
    return group is not None and group.policy == AFFINITY


def group_hint(request: backlog_model.Request) -> str:
    """Return the uuid of the group that a request names, '' if none."""
    found = reservation_rules.hints(request.body).get("group")
    return found if isinstance(found, str) else ""


def key(request: backlog_model.Request) -> str:
    """Return the key of its group among known groups, '' if it has none."""
    return request.uuid if request.apart else group_hint(request)


def group_of(request: backlog_model.Request,
       known: Mapping[str, Group]) -> Group | None:
    """Return the group of the servers of a request, None if none is known.

    A group of another project does not count, whether Nova accepts it or not.

    :param known: {key(): group}
    """
    found = known.get(key(request))
    if found is None:
        return own_group(request) if request.apart else None
    return found if found.project_id in ("", request.project_id) else None


def own_group(request: backlog_model.Request) -> Group:
    """Return the anti-affinity group of a request with ``apart``."""
    return Group(
        request.uuid, ANTI_AFFINITY,
        members=frozenset(server.uuid for server in request.servers), )


#: Why other requests of an affinity group wait until it has a host.
HOST_UNKNOWN = (
    "Earlier requests of its server group start first: it has to be on their "
    "host, which Nova has not chosen yet.")


def why_no_host(group: Group, is_settled: bool, has_some: bool) -> str:
    """Return why a group finds no host although there is capacity.

    :param is_settled: whether it has servers on a host that is in use
    :param has_some: whether there is room for one of them, but for fewer
        than have to start together
    """
    if group.policy == ANTI_AFFINITY:
        if has_some:
            return (
                "The hosts that its server group allows do not have enough "
                "capacity for the servers that have to start together.")
        return (
            "Only hosts with the maximum number of servers of its server "
            "group have free capacity.")
    if is_settled:
        return "The host of its server group has no capacity for it now."
    if group.elsewhere:
        return "The host of its server group is not in use."
    return (
        "No host has capacity for all of its servers, which have to be on "
        "the same host by their server group.")


def why_too_large(group: Group, is_settled: bool) -> str:
    """Return why the servers of a group never fit.

    :param is_settled: whether it has servers on a host that is in use
    """
    if group.policy == ANTI_AFFINITY:
        return (
            "Even if empty, the enabled hosts could not run the servers that "
            "have to start together, with the maximum number per host of "
            "their server group.")
    if is_settled:
        return (
            "The host of its server group is too small for it, even if "
            "empty.")
    return (
        "No enabled host could run all of its servers, which have to be on "
        "the same host, even if empty.")


def members_by_host(known: Iterable[Group], consumers: Mapping[str, Collection[
        str]]) -> dict[str, dict[str, int]]:
    """Return {host: {uuid of a group: how many of its servers}}.

    :param consumers: {host: the uuids of who uses something of it}
    """
    of_member: dict[str, list[str]] = {}
    for group in known:
        for uuid in group.members:
            of_member.setdefault(uuid, []).append(group.uuid)
    found: dict[str, dict[str, int]] = {}
    for host, uuids in consumers.items() if of_member else ():
        for uuid in of_member.keys() & uuids:
            there = found.setdefault(host, {})
            for name in of_member[uuid]:
                there[name] = there.get(name, 0) + 1
    return found


_NOWHERE: Mapping[int, int] = {}


class GroupHosts:
    """The hosts of the servers of groups during a pass.

    A group of None stands for servers without a group.

    :param members: of each host, {uuid of a group: how many}
    """

    def __init__(self, members: Sequence[Mapping[str, int]]) -> None:
        # {uuid of a group: {number of the host: how many}}
        self._there: dict[str, dict[int, int]] = {}
        self._astray: set[str] = set()
        for number, some in enumerate(members):
            for uuid, count in some.items():
                self._there.setdefault(uuid, {})[number] = count

    def copy(self) -> GroupHosts:
        """Return an independent copy."""
        other = GroupHosts(())
        other._there = {
            uuid: dict(hosts) for uuid, hosts in self._there.items()}
        other._astray = set(self._astray)
        return other

    def by_host(self) -> dict[int, dict[str, int]]:
        """Return {number of a host: {uuid of a group: how many}}."""
        found: dict[int, dict[str, int]] = {}
        for uuid, hosts in self._there.items():
            for number, count in hosts.items():
                found.setdefault(number, {})[uuid] = count
        return found

    def most(self, group: Group | None, number: int, most: int) -> int:
        """Return how many more servers of a group fit a host, up to ``most``.
        """
        if group is None:
            return most
        if group.policy == ANTI_AFFINITY:
            there = self._there.get(group.uuid, _NOWHERE).get(number, 0)
            return min(most, max(0, group.most - there))
        hosts = self.only(group)
        return most if hosts is None or number in hosts else 0

    def only(self, group: Group | None) -> Collection[int] | None:
        """Return the only hosts that a group may use, None for any."""
        if not is_together(group):
            return None
        there = self._there.get(group.uuid, _NOWHERE)
        return there if there or group.elsewhere else None

    def is_settled(self, group: Group | None) -> bool:
        """Tell whether the group has servers on a host that is in use."""
        return group is not None and bool(self._there.get(group.uuid))

    def is_host_unknown(self, group: Group | None) -> bool:
        """Tell whether Nova is still choosing the host of the group."""
        return (group is not None and group.uuid in self._astray
                and not self.is_settled(group))

    def add(
        self, group: Group | None, hosts: Mapping[int, int], is_sure: bool
    ) -> None:
        """Add servers of a group to hosts.

        :param hosts: {number: how many}
        :param is_sure: otherwise Nova may choose others
        """
        if group is None:
            return
        if is_together(group) and not (is_sure or self.is_settled(group)):
            self._astray.add(group.uuid)
            return
        there = self._there.setdefault(group.uuid, {})
        for number, count in hosts.items():
            there[number] = there.get(number, 0) + count
