# SPDX-License-Identifier: Apache-2.0

"""Limits on simultaneous evictions in a project or server group."""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
import functools
from typing import TypeAlias

from nova_preempt.core.model import PreemptibleServer, VictimCap

#: ('project', id) or ('group', id)
Account: TypeAlias = tuple[str, str | int]


@dataclasses.dataclass(frozen=True)
class EvictionBudgets:
    """Limits on simultaneous evictions, and the evictions in progress.

    ``project_budget`` and ``group_budget``: the most servers of each, 0 = no
    limit. ``ending``: {uuid: project id} of the servers that are being
    evicted. ``groups``: {uuid: ids of its server groups}, of every server that
    may be passed.
    """

    project_budget: int
    group_budget: int
    ending: Mapping[str, str]
    groups: Mapping[str, Iterable[int | str]]

    def accounts(self, uuid: str, project_id: str) -> dict[Account, int]:
        """Return {account of a server: its budget}."""
        found: dict[Account, int] = {}
        if self.project_budget:
            found["project", project_id] = self.project_budget
        if self.group_budget:
            for group_id in sorted(self.groups.get(uuid, ())):
                found["group", group_id] = self.group_budget
        return found

    @functools.cached_property
    def _spent(self) -> collections.Counter[Account]:
        return collections.Counter(
            account for uuid, project_id in self.ending.items()
            for account in self.accounts(uuid, project_id))

    def left(self, server: PreemptibleServer) -> dict[Account, int]:
        """Return the remaining budget of each account of a server.

        {} for a server that is being evicted, since it counts already.
        """
        if server.uuid in self.ending:
            return {}
        return {
            account: max(0, budget - self._spent[account])
            for account, budget in self.accounts(
                server.uuid, server.project_id).items()
        }

    def allows(self, server: PreemptibleServer) -> bool:
        """Return whether evicting this server alone keeps the budgets."""
        return all(self.left(server).values())

    def caps(self, servers: Iterable[PreemptibleServer]) -> list[VictimCap]:
        """Return caps that keep the budgets for these servers together."""
        members: dict[Account, set[str]] = {}
        most: dict[Account, int] = {}
        for server in servers:
            for account, left in self.left(server).items():
                members.setdefault(account, set()).add(server.uuid)
                most[account] = left
        return [
            VictimCap(frozenset(members[account]), most[account])
            for account in sorted(most, key=str)]

    def exceeded(self, victims: Mapping[str, str]) -> str:
        """Return which budget these victims exceed, '' if none.

        ``victims``: {uuid: project id}, which ``ending`` has already.
        """
        accounts: dict[Account, int] = {}
        for uuid, project_id in victims.items():
            accounts |= self.accounts(uuid, project_id)
        for account, budget in sorted(accounts.items(), key=str):
            number = self._spent[account]
            if number > budget:
                kind, key = account
                what = "project" if kind == "project" else "server group"
                return (
                    f"{what} {key} would have {number} servers ending, its "
                    f"budget is {budget}")
        return ""
