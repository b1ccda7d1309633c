# SPDX-License-Identifier: Apache-2.0
"""Quotas of normal and preemptible servers in a project.

A server counts by the size of its flavor, as in Nova's own quota: memory in
MiB. A limit below 0 is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses

NAMES = ("servers", "vcpus", "memory_mb")

# What limits of normal servers are called.
_NORMAL = "normal_"

#: Every name that limits_of() takes.
LIMITS = tuple(prefix + name for name in NAMES for prefix in ("", _NORMAL))


@dataclasses.dataclass(frozen=True)
class ServerSize:
    """What one server counts, and as which kind."""

    preemptible: bool
    vcpus: int
    memory_mb: int


@dataclasses.dataclass(frozen=True)
class CountedServer:
    """A server in a cell.

    :ivar amounts: more than one while it is resized: either may stay
    :ivar busy: whether Nova works on it
    """

    amounts: Sequence[ServerSize]
    busy: bool


@dataclasses.dataclass(frozen=True)
class Claim:
    """What was admitted for a server, and may not be in records yet."""

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

    :ivar used: before the request
    :ivar requested: what it adds
    """

    name: str
    limit: int
    used: int
    requested: int


@dataclasses.dataclass(frozen=True)
class ProjectRecords:
    """What is known of a project.

    :ivar servers: those in cells, by uuid
    :ivar requests: uuids of those that are in no cell yet
    :ivar claims: those that came before the one that is asked about
    """

    servers: Mapping[str, CountedServer]
    requests: Collection[str] = ()
    claims: Sequence[Claim] = ()

    def is_pending(self, claim: Claim) -> bool:
        """Whether records may not show yet what was admitted.

        Nova marks a server as busy before it asks for a host, and until its
        record has the new flavor.
        """
        server = self.servers.get(claim.server_uuid)
        return claim.server_uuid in self.requests or (
            server is not None and server.busy)

    def settled(self) -> list[int]:
        """Ids of the claims that do not count any more."""
        return [claim.id for claim in self.claims
                if not self.is_pending(claim)]

    def usage(
        self, wanted: ServerSize, uuids: Collection[str]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Return what is used, and what a request adds to it, by name.

        A server that moves adds nothing, one that is resized the rest. What
        grows by nothing is not named.

        :param wanted: what each server of the request counts
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
    """Return what counts of a server; None if it is of another kind."""
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

    :param of_all: each of LIMITS
    :param of_project: those of LIMITS that are otherwise for a project
    """
    limits = {**of_all, **of_project}
    prefix = "" if preemptible else _NORMAL
    return {name: limits[prefix + name] for name in NAMES}


def is_bounded(limits: Mapping[str, int]) -> bool:
    """Whether there is any limit: if not, nothing has to be counted."""
    return any(limit >= 0 for limit in limits.values())


def exceeded(
    limits: Mapping[str, int], used: Mapping[str, int],
    requested: Mapping[str, int]) -> list[ExceededLimit]:
    """Return the limits that a request would exceed.

    What it adds nothing to does not keep it out, however much it is.
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
    """Return the keys by which a flavor keeps out of Nova's quota.

    With unified limits Nova checks the resource classes that a flavor asks
    for: with resources:VCPU=0 it asks for none. Only preemptible servers may
    keep out, which are counted here.

    :param classes: those of which the size of the flavor is claimed all the
        same
    """
    if not preemptible:
        return set()
    keys = (f"resources:{name}" for name in classes)
    return {key for key in keys if extra_specs.get(key) == "0"}
