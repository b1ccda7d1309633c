# SPDX-License-Identifier: Apache-2.0
"""Quotas of normal and preemptible servers in a project.

A server counts by its flavor, as in Nova's own quota: memory in MiB. A
negative limit is unlimited.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses

NAMES = ("servers", "vcpus", "memory_mb")

# Prefix of the limits of normal servers.
_NORMAL = "normal_"

#: The names of all limits.
LIMITS = tuple(prefix + name for name in NAMES for prefix in ("", _NORMAL))


@dataclasses.dataclass(frozen=True)
class ServerSize:
    """The amounts that a server counts, and its kind."""

    preemptible: bool
    vcpus: int
    memory_mb: int


@dataclasses.dataclass(frozen=True)
class CountedServer:
    """A server in a cell.

    :ivar amounts: two while it is resized: either may remain
    :ivar busy: whether Nova works on it
    """

    amounts: Sequence[ServerSize]
    busy: bool


@dataclasses.dataclass(frozen=True)
class QuotaClaim:
    """An admitted server that records may not show yet."""

    id: int
    server_uuid: str
    preemptible: bool
    vcpus: int
    memory_mb: int

    @property
    def amounts(self) -> ServerSize:
        return ServerSize(self.preemptible, self.vcpus, self.memory_mb)


@dataclasses.dataclass(frozen=True)
class ExceededLimit:
    """A limit that a request would exceed.

    :ivar used: the usage before the request
    :ivar requested: the usage that it adds
    """

    name: str
    limit: int
    used: int
    requested: int


@dataclasses.dataclass(frozen=True)
class ProjectServers:
    """The servers and claims of a project.

    :ivar servers: servers in cells, by uuid
    :ivar requests: uuids of servers that are in no cell yet
    :ivar claims: the claims before the one that is checked
    """

    servers: Mapping[str, CountedServer]
    requests: Collection[str] = ()
    claims: Sequence[QuotaClaim] = ()

    def is_pending(self, claim: QuotaClaim) -> bool:
        """Return whether records may not show the claim yet.

        Nova marks a server as busy before it asks for a host, and until its
        record has the new flavor.
        """
        server = self.servers.get(claim.server_uuid)
        return claim.server_uuid in self.requests or (
            server is not None and server.busy)

    def settled(self) -> list[int]:
        """Return the ids of claims that do not count any more."""
        return [claim.id for claim in self.claims
                if not self.is_pending(claim)]

    def usage(
        self, wanted: ServerSize, uuids: Collection[str]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Return the usage, and what a request adds to it, by name.

        A server that moves adds nothing, one that is resized the difference.
        Names with no growth are left out.

        :param wanted: the size of each server of the request
        :param uuids: of its servers
        """
        sizes = {uuid: list(server.amounts)
                 for uuid, server in self.servers.items()}
        for claim in self.claims:
            if self.is_pending(claim):
                sizes.setdefault(claim.server_uuid, []).append(claim.amounts)
        own = _sum(_largest(sizes[uuid], wanted.preemptible)
                   for uuid in uuids if uuid in sizes)
        used = _sum(_largest(amounts, wanted.preemptible)
                    for amounts in sizes.values())
        will_be = _sum([wanted] * len(uuids))
        return used, {name: will_be[name] - own[name] for name in NAMES
                      if will_be[name] > own[name]}


def _largest(sizes: Iterable[ServerSize],
             preemptible: bool) -> ServerSize | None:
    """Return the size that counts, None if it is of another kind."""
    sizes = [size for size in sizes if size.preemptible == preemptible]
    if not sizes:
        return None
    return ServerSize(preemptible, max(size.vcpus for size in sizes),
                      max(size.memory_mb for size in sizes))


def _sum(amounts: Iterable[ServerSize | None]) -> dict[str, int]:
    counted = [item for item in amounts if item is not None]
    return {"servers": len(counted),
            "vcpus": sum(item.vcpus for item in counted),
            "memory_mb": sum(item.memory_mb for item in counted)}


def limits_of(
    of_all: Mapping[str, int], of_project: Mapping[str, int], preemptible: bool
) -> dict[str, int]:
    """Return the limits of one kind of server, by NAMES.

    :param of_all: the default of each of LIMITS
    :param of_project: the LIMITS that a project overrides
    """
    limits = {**of_all, **of_project}
    prefix = "" if preemptible else _NORMAL
    return {name: limits[prefix + name] for name in NAMES}


def is_bounded(limits: Mapping[str, int]) -> bool:
    """Return whether any limit is set, so that usage must be counted."""
    return any(limit >= 0 for limit in limits.values())


def exceeded(
    limits: Mapping[str, int], used: Mapping[str, int],
    requested: Mapping[str, int]) -> list[ExceededLimit]:
    """Return the limits that a request would exceed.

    A limit to which the request adds nothing does not refuse it, even if
    exceeded.
    """
    return [ExceededLimit(name, limits[name], used[name], amount)
            for name, amount in requested.items()
            if 0 <= limits[name] < used[name] + amount]


def message(project_id: str, preemptible: bool,
            over: Iterable[ExceededLimit]) -> str:
    """Return why a request is refused, as a sentence."""
    kind = "preemptible" if preemptible else "normal"
    limits = "; ".join(
        f"{item.name}: limit {item.limit}, used {item.used}, requested "
        f"{item.requested}" for item in over)
    return (f"Quota of {kind} servers exceeded for project {project_id}: "
            f"{limits}.")


def zeroed(
    extra_specs: Mapping[str, str], classes: Iterable[str], preemptible: bool
) -> set[str]:
    """Return the extra specs by which a flavor avoids Nova's quota.

    With unified limits Nova checks the resource classes that a flavor asks
    for: with resources:VCPU=0 it asks for none. Only preemptible servers,
    which are counted here, may do so.

    :param classes: the classes that are claimed by the size of the flavor all
        the same
    """
    if not preemptible:
        return set()
    keys = (f"resources:{name}" for name in classes)
    return {key for key in keys if extra_specs.get(key) == "0"}
