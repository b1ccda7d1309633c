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
"""How many may end together, as far as that is settled by an operator."""

from __future__ import annotations

import collections
from collections.abc import Mapping

from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import budgets
from nova_preempt.simulator.parts import Parts
from nova_preempt.simulator.servers import Server


class Budgets:
    """Knows who has ended a while ago, and still counts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # (when, uuid, project, groups)
        self._ended: collections.deque[
            tuple[int, str, str, tuple[str, ...]]] = collections.deque()

    def ended(self, victim: Server) -> None:
        """One has."""
        if self._parts.options.budget_window_s:
            uuid = victim.boot.id
            self._ended.append((
                self._parts.events.now_us, uuid, victim.boot.project,
                self._parts.groups.get(uuid, ())))

    def left(self, ending: Mapping[str, Server]) -> budgets.Budgets | None:
        """Return what is left, None where nothing is settled.

        :param ending: those that end now
        """
        options = self._parts.options
        if not (options.project_budget or options.group_budget):
            return None
        since_us = (self._parts.events.now_us
                    - options.budget_window_s * SECOND)
        while self._ended and self._ended[0][0] <= since_us:
            self._ended.popleft()
        projects = {uuid: project for _, uuid, project, _ in self._ended}
        groups = {uuid: found for _, uuid, _, found in self._ended}
        return budgets.Budgets(
            options.project_budget, options.group_budget,
            projects | {uuid: victim.boot.project
                        for uuid, victim in ending.items()},
            groups | self._parts.groups)
