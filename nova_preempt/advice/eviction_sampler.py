# SPDX-License-Identifier: Apache-2.0
"""Samples preemptible servers and their evictions for eviction rates."""

import math

from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.db import eviction_samples


class EvictionSampler:
    """Records which preemptible servers there are and were evicted.

    :param parts: a nova_preempt.handover.service_context.ServiceContext
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    """

    def __init__(self, parts, inventory):
        self._parts, self._inventory = parts, inventory

    def run(self):
        """Record a sample.

        :returns: after how many seconds to record the next one
        """
        # Decisions name the host of the service, servers their node.
        zones = {name: host.properties.get('availability_zone', '')
                 for host in self._inventory.hosts().values()
                 for name in (host.name, host.service_host)}
        for rate in eviction_samples.record(
                self._parts.process.db, self._parts.known.servers.servers(),
                zones, timeutils.utcnow().replace(microsecond=0)):
            for gauge, value in ((metrics.EVICTED_SHARE, rate.share),
                                 (metrics.EVICTED_LIFE, rate.life_s)):
                gauge.labels(rate.flavor, rate.zone, rate.hours).set(
                    math.nan if value is None else value)
        return eviction_samples.INTERVAL_S
