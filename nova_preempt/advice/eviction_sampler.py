# SPDX-License-Identifier: Apache-2.0
"""Samples preemptible servers and their evictions for eviction rates."""

from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.db import eviction_samples


class EvictionSampler:
    """Records which preemptible servers there are and were evicted.

    :param parts: a nova_preempt.handover.service_context.ServiceContext
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    """

    def __init__(self, parts, inventory):
        self._db = parts.process.db
        self._servers = parts.known.servers
        self._inventory = inventory

    def run(self):
        """Record a sample.

        :returns: after how many seconds to record the next one
        """
        # Decisions name the host of the service, servers their node.
        zones = {name: host.properties.get('availability_zone', '')
                 for host in self._inventory.hosts().values()
                 for name in (host.name, host.service_host)}
        for rate in eviction_samples.record(
                self._db, self._servers.servers(), zones,
                timeutils.utcnow().replace(microsecond=0)):
            metrics.EVICTED_SHARE.labels(
                rate.flavor, rate.zone, rate.hours).set(rate.share or 0)
        return eviction_samples.INTERVAL_S
