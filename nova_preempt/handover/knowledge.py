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
"""What is known of the cloud and kept fresh in the background."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from nova_preempt import headroom
from nova_preempt.cloud import clients
from nova_preempt.cloud import one_time_devices
from nova_preempt.cloud import providers
from nova_preempt.cloud import servers
from nova_preempt.cloud import trees
from nova_preempt.core.energy import steps
from nova_preempt.core.scheduling import policy
from nova_preempt.db import energy as db_energy
from nova_preempt.db import hints
from nova_preempt.handover import budgets
from nova_preempt.handover import eviction_policy

if TYPE_CHECKING:
    from nova_preempt.handover import parts

# More uuids than this are not asked for one by one.
_MANY = 500


class Knowledge:
    """Servers, providers, and what bounds the end of servers.

    :param process: a nova_preempt.handover.parts.Process
    :param clients: a nova_preempt.cloud.clients.Clients
    :param notice_limit_s: see eviction_policy.Policies
    :param promised: see eviction_policy.Policies
    """

    def __init__(self, process: parts.Process, clients: clients.Clients,
                 notice_limit_s: float | None = None,
                 promised: eviction_policy.Promised | None = None) -> None:
        self._db = process.db
        self.providers = providers.ProviderCache(clients.placement)
        self.trees = trees.TreeCache(clients.placement, self.providers)
        self.headroom = headroom.Headroom(
            process.options, clients.placement, self.providers,
            trees=self.trees)
        self.promised = promised
        self.servers = servers.ServerCache(
            clients.get_cells, self._hinted, self.providers.left,
            class_of=promised.class_of if promised else None,
            devices=one_time_devices.OneTimeDevices(clients.placement))
        self.budgets = budgets.Budgets(process.options, process.decisions,
                                       self.servers)
        self._policies = eviction_policy.Policies(
            process.options, process.decisions, notice_limit_s, promised)

    def policy(self) -> policy.Policy:
        """The core.scheduling.policy.Policy, as it is now."""
        return self._policies.current()

    def _hinted(self, uuids: Collection[str]) -> Collection[str]:
        if not uuids:
            return set()
        return hints.get(self._db, uuids if len(uuids) <= _MANY else None)

    def refresh(self) -> None:
        """Read what may have changed."""
        if self.promised:
            self.servers.note_classes(self.promised.refresh())
        self.servers.refresh()
        self._policies.refresh()
        self.budgets.refresh()
        self.headroom.refresh()
        # Servers are on some; for those that sleep requests come.
        nodes = self.servers.by_node().keys() | db_energy.get_power(
            self._db, steps.COMING).keys()
        if self.headroom:
            self.providers.refresh(None)
        elif nodes:
            self.providers.refresh(nodes)
