# SPDX-License-Identifier: Apache-2.0
"""Reads running evictions for eviction budgets.

The selection of victims keeps the budgets as far as they are known. Writing
the decision to the database enforces them across all schedulers.
"""

import collections
from collections.abc import Iterable, Mapping
import datetime
from typing import Any

from oslo_config import cfg
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.cloud import server_groups
from nova_preempt.core.scheduling import eviction_budgets
from nova_preempt.db import decisions


class BudgetReader:
    """Reads the configured budgets; False if there is none.

    :param options: [preemption] of the configuration
    :param decisions: a nova_preempt.db.Decisions
    :param view: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    """

    def __init__(self, options: cfg.ConfigOpts.GroupAttr,
                 decisions: db.Decisions,
                 view: preemptible_server_cache.ServerCache) -> None:
        self._options = options
        self._decisions = decisions
        self._view = view
        # {server uuid: ids of its groups}
        self._groups: dict[str, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._options.project_budget or self._options.group_budget)

    def _left(self, ending: Mapping[str, str], groups: Mapping[str, set[int]]
              ) -> eviction_budgets.EvictionBudgets:
        """Return core EvictionBudgets; ending is {server uuid: project}."""
        return eviction_budgets.EvictionBudgets(
            self._options.project_budget, self._options.group_budget, ending,
            groups)

    def read(self) -> eviction_budgets.EvictionBudgets | None:
        """Return the current core EvictionBudgets, None if none is set."""
        if not self:
            return None
        ending = self._decisions.get_ending(self._since())
        self._learn_groups(set(ending))
        return self._left(ending, self._groups)

    def refresh(self) -> None:
        """Refresh the groups of all servers, in the background."""
        if self._options.group_budget:
            self._groups = server_groups.get_groups(self._uuids())

    def _uuids(self) -> set[str]:
        return {server.uuid for server in self._view.servers()}

    def _since(self) -> datetime.datetime | None:
        window_s = self._options.budget_window_s
        if not window_s:
            return None
        return timeutils.utcnow() - datetime.timedelta(seconds=window_s)

    def _learn_groups(self, uuids: set[str]) -> None:
        """Read the groups of these and all cached servers if unknown."""
        if self._options.group_budget:
            # A server does not change its groups.
            self._groups |= server_groups.get_groups(
                (self._uuids() | uuids) - self._groups.keys())

    def guard(self, victims: Iterable[decisions.Victim]) -> dict[str, Any]:
        """Return arguments by which create_decision() enforces budgets.

        :param victims: db.Victims
        """
        if not self:
            return {}
        projects = {victim.server_uuid: victim.project_id
                    for victim in victims}
        in_groups: dict[str, set[int]] = collections.defaultdict(set)
        if self._options.group_budget:
            for group_id, uuids in server_groups.get_members(set().union(
                    *server_groups.get_groups(set(projects)).values())).items(
                        ):
                for uuid in uuids:
                    in_groups[uuid].add(group_id)

        def check(ending: Mapping[str, str]) -> None:
            over = self._left(ending, in_groups).exceeded(projects)
            if over:
                raise decisions.OverBudget(over)

        return {'check': check, 'since': self._since()}
