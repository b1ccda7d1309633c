# SPDX-License-Identifier: Apache-2.0
"""Cache of cost bounds of the preemptible servers on hosts.

For most servers only the age changes from one request to the next. All other
figures are kept as long as the records that they were computed from are the
same.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import operator
from typing import Any

from nova_preempt.core import costs
from nova_preempt.core.model import Host, PreemptibleServer, Provider, Request
from nova_preempt.core.scheduling.cloud_view import ListedHost
from nova_preempt.core.scheduling.cost_bounds import CostBounds
from nova_preempt.core.scheduling.cost_bounds import HostedServer
from nova_preempt.core.scheduling.preemption_policy import Policy
from nova_preempt.core.scheduling.preemption_policy import PreemptionRight

#: The number of latest kinds of requests whose cost bounds are kept.
MOST_KINDS = 32

@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    terms: tuple[Any, ...]
    providers: tuple[Provider, ...]
    servers: Mapping[str, PreemptibleServer]
    hosted: tuple[HostedServer, ...]


class CostBoundCache:
    """Hosted servers and cost bounds by host. Thread-safe."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, bool], _Entry] = {}
        self._floors: dict[Any, CostBounds] = {}
        self._most_hosts = 0

    def hosted(
        self, host: Host, servers: Mapping[str, PreemptibleServer],
        policy: Policy) -> tuple[HostedServer, ...]:
        """Return the preemptible servers on a host, in order of uuid.

        :param servers: the preemptible ones there, by uuid; never changed
            afterwards
        """
        terms = (policy.rules, policy.actions)
        # Some requests read the whole tree, others its root only.
        key = (host.uuid, len(host.providers) > 1)
        entry = self._entries.get(key)
        if entry is not None and entry.terms != terms:
            entry = None
        if (
            entry is None or len(entry.providers) != len(host.providers)
            or not all(map(operator.is_, entry.providers, host.providers))
            or (entry.servers is not servers and entry.servers != servers)):
            known = {} if entry is None else {
                each.server.uuid: each for each in entry.hosted
            }
            found = (
                _hosted(host, server, policy, known.get(uuid))
                for uuid, server in sorted(servers.items()))
            entry = self._entries[key] = _Entry(
                terms, host.providers, servers,
                tuple(each for each in found if each is not None), )
        return entry.hosted

    def floors(self, request: Request, policy: Policy,
               rank: PreemptionRight) -> CostBounds | None:
        """Return the cost bounds of such requests, by host.

        None if the cost function has no known bound over time.
        """
        floor = costs.LOWER_BOUNDS.get(policy.cost)
        if floor is None:
            return None
        has_claim = rank.claim is not None
        kind = (
            request.kind, policy.rules, policy.actions, policy.cost,
            policy.cost_options,
            None if policy.classes is None else policy.classes.table,
            has_claim)
        found = self._floors.pop(kind, None)
        if found is None:
            found = CostBounds(request, policy, floor, has_claim)
        self._floors[kind] = found
        for oldest in list(self._floors)[:-MOST_KINDS]:
            self._floors.pop(oldest, None)
        return found

    def forget_others(self, listed: Sequence[ListedHost]) -> None:
        """Drop other hosts once they outnumber these."""
        # A request may be for one host only, and the next one for all.
        self._most_hosts = max(self._most_hosts, len(listed))
        limit = 2 * self._most_hosts + 100
        if len(self._entries) > limit:
            kept = {listing.uuid for listing in listed}
            self._entries = {
                key: entry
                for key, entry in list(self._entries.items())
                if key[0] in kept
            }
        for kind, floors in list(self._floors.items()):
            if len(floors) > limit:
                self._floors.pop(kind, None)


def _hosted(
    host: Host, server: PreemptibleServer, policy: Policy,
    known: HostedServer | None,) -> HostedServer | None:
    """Return the earlier HostedServer if unchanged, else a new one or None."""
    held = host.held(server.uuid)
    if known is not None and known.server is server and known.held == held:
        return known
    if not held or not policy.is_able(server):
        return None
    return HostedServer.of(server, held, policy)
