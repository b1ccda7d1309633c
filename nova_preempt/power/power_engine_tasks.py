# SPDX-License-Identifier: Apache-2.0
"""Assembles power control for nova-preempt-engine."""

import functools
import time

from nova_preempt.conf import energy
from nova_preempt.conf import engine_tasks
from nova_preempt.core.energy import power_savings
from nova_preempt.db import pauses
from nova_preempt.power import compute_hosts
from nova_preempt.power import driver as power_driver
from nova_preempt.power import efficiency_cache
from nova_preempt.power import energy_loop
from nova_preempt.power import energy_options
from nova_preempt.power import energy_sampler
from nova_preempt.power import power_readings
from nova_preempt.power import power_switching


class PowerEngineTasks:
    """Assembles the tasks and the RPC endpoint of power control.

    :param conf: nova.conf.CONF
    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param clients: a nova_preempt.cloud.clients.Clients
    :param driver: see power_switching.PowerSwitcher; by default the configured
        drivers
    :param leads: returns whether this engine is the leader
    :param monotonic: returns seconds of a clock that is never set
    :ivar works: [(name, function)], see nova_preempt.engine.periodic_tasks
    :ivar endpoints: RPC endpoints
    """

    def __init__(self, conf, process, clients, driver=None,
                 leads=lambda: True, monotonic=time.monotonic):
        options = self._options = conf[energy.GROUP]
        hosts = compute_hosts.ComputeHosts(clients.placement,
                                           clients.get_cells)
        self.figures = efficiency_cache.EfficiencyCache(options,
                                                        lambda: process.db)
        self._pauses = process.pauses
        self.works = []
        self.endpoints = []
        self.switcher = None
        if options.enabled:
            self._pause_s = conf[engine_tasks.GROUP].interval_s
            get_options = functools.partial(
                energy_options.get_options, options,
                energy_options.load_forecast(options), self._pause_s)
            self.switcher = power_switching.PowerSwitcher(
                get_options, process.db, clients.nova, hosts,
                driver or power_driver.Drivers(conf), process.clock,
                lambda: leads() and not self._is_stopped(), monotonic)
            self.control = energy_loop.EnergyLoop(
                get_options, process.db, hosts, self.switcher,
                self.efficiencies)
            self.endpoints.append(energy_loop.PowerEndpoint(
                self.control, self._is_stopped))
            self.works.append(('power: control', self._step))
        if options.enabled or options.sources:
            self.observer = energy_sampler.EnergySampler(
                process.db, hosts,
                power_readings.PowerReader(conf, clock=process.clock),
                self._idle_watts, clients.get_cells, process.clock)
            self.works.append(('power: readings', self._observe))

    def efficiencies(self):
        """Return {host: FLOPS per watt} where known."""
        self.figures.start()
        return self.figures.efficiencies()

    def asleep(self):
        """Return {host: host_classification.OffHost}: hosts off or waking."""
        if self.switcher is None or not self._options.enabled:
            return {}
        return self.control.off(self._pauses.why(pauses.POWER))

    def _idle_watts(self):
        """Return {host: watts}, see energy_sampler.EnergySampler."""
        self.figures.start()
        return {host: item.idle_watts for host, item
                in self.figures.all().items() if item.idle_watts is not None}

    def _is_stopped(self):
        """Return whether power control is disabled or paused."""
        return not self._options.enabled or bool(
            self._pauses.why(pauses.POWER))

    def _step(self):
        return (self._pause_s if self._is_stopped() else self.control.step())

    def _observe(self):
        self.observer.observe()
        return power_savings.INTERVAL_S

    def close(self):
        """Stop the threads without waiting for steps that run."""
        self.figures.stop()
        if self.switcher:
            self.switcher.close()
