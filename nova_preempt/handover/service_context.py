# SPDX-License-Identifier: Apache-2.0
"""Assembles the objects of a service that evicts servers."""

from collections.abc import Callable, Collection, Mapping
import datetime
import os
from typing import Any, TypeAlias

from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt import headroom
from nova_preempt import pause_reader
from nova_preempt.cloud import clients
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import one_time_devices
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.cloud import provider_cache
from nova_preempt.cloud import provider_tree_cache
from nova_preempt.core.energy import power_steps
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import energy_store
from nova_preempt.db import preemptible_hints
from nova_preempt.db import schema_upgrade
from nova_preempt.handover import budget_reader
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import handover
from nova_preempt.handover import process_lease

#: Returns now, timezone-aware.
Clock: TypeAlias = Callable[[], datetime.datetime]


#: How often schedulers and engines roll back orphaned preemptions, in seconds.
#: They also do so when they start.
REPAIR_S = 60


# The most uuids of one query for hints; above it all hints are read.
_MANY = 500


class ProcessContext:
    """The context of a service process, from start() to close().

    :param conf: nova.conf.CONF
    :param host: the name of the host that it runs on
    :param clock: returns now, timezone-aware
    :ivar options: [preemption] of the configuration
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str, clock: Clock) -> None:
        self.options = conf.preemption
        self.clock = clock
        self.db = db.Database(conf)
        self.decisions = db.Decisions(self.db)
        self._sync_database(conf)
        self.owner = process_lease.Lease(
            self.db, host,
            os.path.join(conf.state_path, 'nova-preempt-owners'),
            process_lease.INTENT_TIMEOUT_S)
        self.heartbeat = process_lease.Heartbeat(self.owner)
        self.pauses = pause_reader.PauseReader(self.db)

    def _sync_database(self, conf: cfg.ConfigOpts) -> None:
        """Create the tables of a SQLite file; check those of a server."""
        if self.db.is_sqlite:
            with lockutils.external_lock('nova-preempt-db',
                                         lock_path=conf.state_path):
                schema_upgrade.sync(self.db)
        else:
            schema_upgrade.check(self.db)

    def start(self) -> None:
        """Start to renew the lease."""
        self.heartbeat.start()

    def close(self) -> None:
        """End the lease, which leaves open decisions to other processes."""
        self.heartbeat.stop()
        self.owner.close()


class CloudCaches:
    """Caches of servers and providers, and the policy of evictions.

    :param process: a Process
    :param clients: a nova_preempt.cloud.clients.Clients
    :param notice_limit_s: see eviction_policy.PolicyBuilder
    :param promised: see eviction_policy.PolicyBuilder
    """

    def __init__(self, process: ProcessContext, clients: clients.Clients,
                 notice_limit_s: float | None = None,
                 promised: eviction_policy.ServerClasses | None = None
                 ) -> None:
        self._db = process.db
        self.providers = provider_cache.ProviderCache(clients.placement)
        self.trees = provider_tree_cache.ProviderTreeCache(clients.placement,
                                                           self.providers)
        self.headroom = headroom.Headroom(
            process.options, clients.placement, self.providers,
            trees=self.trees)
        self.promised = promised
        self.servers = preemptible_server_cache.ServerCache(
            clients.get_cells, self._hinted, self.providers.left,
            class_of=promised.class_of if promised else None,
            devices=one_time_devices.OneTimeDevices(clients.placement))
        self.budgets = budget_reader.BudgetReader(process.options,
                                             process.decisions, self.servers)
        self._policies = eviction_policy.PolicyBuilder(
            process.options, process.decisions, notice_limit_s, promised)

    def policy(self) -> preemption_policy.Policy:
        """Return the current core.scheduling.preemption_policy.Policy."""
        return self._policies.current()

    def _hinted(self, uuids: Collection[str]) -> Collection[str]:
        if not uuids:
            return set()
        return preemptible_hints.get(self._db, uuids if len(uuids) <= _MANY
                                     else None)

    def refresh(self) -> None:
        """Refresh all caches."""
        if self.promised:
            self.servers.note_classes(self.promised.refresh())
        self.servers.refresh()
        self._policies.refresh()
        self.budgets.refresh()
        self.headroom.refresh()
        # Nodes with preemptible servers, and hosts that sleep or wake.
        nodes = self.servers.by_node().keys() | energy_store.get_power(
            self._db, power_steps.COMING).keys()
        if self.headroom:
            self.providers.refresh(None)
        elif nodes:
            self.providers.refresh(nodes)


class ServiceContext:
    """The process, clients, cluster state and handover of a service.

    :param conf: nova.conf.CONF
    :param host: the name of the host that the service runs on
    :param get_client: returns Nova's Placement client
    :param get_cells: returns {uuid: CellMapping} of the cells with servers
    :param clock: returns now, timezone-aware
    :param notice_limit_s: the longest notice that requests can wait for, None
        for any
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str,
                 get_client: Callable[[], Any],
                 get_cells: Callable[[], Mapping[str, Any]], clock: Clock,
                 notice_limit_s: float | None = None) -> None:
        self.process = ProcessContext(conf, host, clock)
        self.clients = clients.Clients(
            nova_api.NovaAPI(conf), placement_api.Placement(get_client),
            get_cells)
        # The plugin of classes of service, None if they are off.
        self.qos = eviction_policy.load_classes(conf)
        self.known = CloudCaches(
            self.process, self.clients, notice_limit_s,
            self.qos and self.qos.promised(self.process.db, clock))
        self.clients.nova.is_away = self.known.servers.is_away
        self.handover = handover.Handover(
            conf, host, self.process, self.clients, self.known.budgets,
            self.known.headroom)

    def repair(self) -> int:
        """Call handover.Handover.repair() after reading the cells.

        The reading detects cells that hang in bounded time: Nova, which would
        wait for such a cell with each victim, is not called for them.
        """
        self.known.servers.refresh()
        return self.handover.repair()


def utcnow() -> datetime.datetime:
    """Return the current time by Nova's clock, timezone-aware."""
    return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)
