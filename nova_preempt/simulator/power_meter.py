# SPDX-License-Identifier: Apache-2.0
"""Meters the power that hosts draw, by the servers on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.core.energy import power_savings
from nova_preempt.simulator import memory_cloud

if TYPE_CHECKING:
    from nova_preempt.simulator.simulation_state import SimulationState


class PowerMeter:
    """Reports the number of hosts that are on and their power.

    A host draws its idle power while it is on, also while it boots, and what
    its share of vCPUs adds; hosts without figures do not count.

    :param figures: {name of a host: its Figures}
    :param asleep_watts: {name of a host: what it draws while it is off}
    """

    def __init__(self, world: SimulationState,
                 figures: Mapping[str, efficiency_ranking.Figures],
                 asleep_watts: Mapping[str, float]) -> None:
        self._report = world.report
        self._figures = figures
        self._asleep_watts = asleep_watts
        self._asleep: set[str] = set()
        self._mw: dict[str, int] = {}
        hosts = world.cloud.hosts.values()
        self._report.level('hosts on', len(hosts))
        for host in hosts:
            self.changed(host)

    def changed(self, host: memory_cloud.MemoryHost) -> None:
        """Something has come to a host, or left it."""
        name = host.name
        figures = self._figures.get(name)
        if figures is None:
            return
        drawn = (self._asleep_watts.get(name, 0.0) if name in self._asleep
                 else figures.marginal_watts(_share(host), in_use=False))
        milliwatts = round(1000 * (drawn or 0.0))
        before = self._mw.get(name, 0)
        if milliwatts != before:
            self._mw[name] = milliwatts
            self._report.level('milliwatts', milliwatts - before)

    def switched(self, host: memory_cloud.MemoryHost, *, on: bool) -> None:
        """A host has got power, or lost it."""
        if on == (host.name not in self._asleep):
            return
        sign = 1 if on else -1
        (self._asleep.discard if on else self._asleep.add)(host.name)
        self._report.level('hosts on', sign)
        cores = host.inventories.get('VCPU')
        if cores is not None:
            self._report.level('cores off', -sign * cores.total)
        figures = self._figures.get(host.name)
        if figures is not None and figures.idle_watts is not None:
            self._report.level('milliwatts saved', -sign * round(
                1000 * (figures.idle_watts
                        - self._asleep_watts.get(host.name, 0.0))))
        self.changed(host)


def _share(host: memory_cloud.MemoryHost) -> float:
    """Return the used share of the vCPUs of a host."""
    inventory = host.inventories.get('VCPU')
    if inventory is None:
        return 0.0
    used = sum(each.get('VCPU', 0) for each in host.allocations.values())
    return efficiency_ranking.share(used, inventory.total,
                                    inventory.allocation_ratio) or 0.0


def figures(levels: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures of energy.

    :param levels: {what: its sum over time, in seconds}
    """
    found: dict[str, Any] = {
        name: round(power_savings.kwh(levels[level] / 1000, 1), 3)
        for name, level in (('used_kwh', 'milliwatts'),
                            ('saved_kwh', 'milliwatts saved'))
        if level in levels}
    if 'cores off' in levels:
        found['core_hours_off'] = round(levels['cores off'] / 3600, 3)
    return found
