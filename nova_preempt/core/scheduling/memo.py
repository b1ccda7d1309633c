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
"""What is worked out once of the preemptible servers on hosts.

Of most servers nothing changes from one request to the next but their age.
What else a decision asks of them is kept as long as the records that it was
worked out from are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core import capacity
from nova_preempt.core.model import (
    Host,
    Provider,
    Resources,
    Server,
    SlotAmounts,
)
from nova_preempt.core.scheduling.policy import Policy

_MICROSECOND = datetime.timedelta(microseconds=1)


def microseconds(when: datetime.datetime) -> int:
    """Return a time as a whole number, for differences."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=when.tzinfo)
    return (when - epoch) // _MICROSECOND


@dataclasses.dataclass(frozen=True, slots=True)
class Tenant:
    """A preemptible server that may end on its host once it is old enough.

    ``freed``: what its end frees; ``resources``: what it has, by class.
    """

    server: Server
    launched_us: int
    freed: SlotAmounts
    resources: Resources


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    terms: tuple[Any, ...]
    providers: tuple[Provider, ...]
    servers: Mapping[str, Server]
    tenants: tuple[Tenant, ...]


class Memo:
    """Tenants by host. Threads may share it: they find the same."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def tenants(
        self, host: Host, servers: Mapping[str, Server], policy: Policy
    ) -> tuple[Tenant, ...]:
        """Return those on a host, in order of uuid.

        :param servers: the preemptible ones there, by uuid
        """
        terms = (policy.rules, policy.actions)
        entry = self._entries.get(host.uuid)
        if (
            entry is None
            or len(entry.providers) != len(host.providers)
            or not all(map(_is, entry.providers, host.providers))
            or entry.servers != servers
            or entry.terms != terms
        ):
            entry = _Entry(
                terms,
                host.providers,
                dict(servers),
                tuple(
                    _tenant(servers[uuid], held, policy)
                    for uuid in sorted(servers)
                    if (held := host.held(uuid))
                    and policy.is_able(servers[uuid])
                ),
            )
            self._entries[host.uuid] = entry
        return entry.tenants

    def forget_others(self, hosts: Collection[str]) -> None:
        """Forget all but these hosts, if that is worth while."""
        if len(self._entries) > 2 * len(hosts) + 100:
            kept = set(hosts)
            self._entries = {
                uuid: entry
                for uuid, entry in list(self._entries.items())
                if uuid in kept
            }


def _is(one: object, other: object) -> bool:
    return one is other


def _tenant(server: Server, held: SlotAmounts, policy: Policy) -> Tenant:
    return Tenant(
        server,
        microseconds(server.launched_at),
        policy.freed(server, held),
        capacity.by_class(held),
    )
