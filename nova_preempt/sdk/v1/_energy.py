# SPDX-License-Identifier: Apache-2.0
"""Methods of "conn.preemption" about power and energy."""

from collections.abc import Iterator
from typing import Any

from openstack import resource

from nova_preempt.sdk.v1 import _base
from nova_preempt.sdk.v1 import energy as _energy


class EnergyMixin(_base.Proxy):
    """The methods of _proxy.Proxy about power and energy."""

    def get_energy(self, **query: Any) -> _energy.Energy:
        """Get the current power draw, and the energy saved.

        :param query: since, by default a month ago
        :returns: one Energy
        """
        return self._single(_energy.Energy, **query)

    def get_energy_report(self, **query: Any) -> _energy.EnergyReport:
        """Get power draw and energy saved over time.

        :param query: since and until, by default the last week
        :returns: one EnergyReport
        """
        return self._single(_energy.EnergyReport, **query)

    def energy_hosts(self) -> Iterator[_energy.EnergyHost]:
        """Return a generator of hosts with power states, by name.

        :returns: a generator of EnergyHost
        """
        return self._all(_energy.EnergyHost)

    def get_energy_host(self, host: _energy.EnergyHost | str
                        ) -> _energy.EnergyHost:
        """Get a host with its power state.

        :param host: name of the host
        :returns: one EnergyHost
        :raises NotFoundException: there is none of this name
        """
        return self._show(_energy.EnergyHost, host)

    def retry_energy_host(self, host: _energy.EnergyHost | str) -> None:
        """Retry the boot of a failed host.

        :param host: name of the host
        """
        self._get_resource(_energy.EnergyHost, host).retry(self)

    def wait_for_energy_host(self, host: _energy.EnergyHost | str,
                             state: str = 'on', *, interval: float = 10,
                             wait: float | None = 600) -> _energy.EnergyHost:
        """Wait until a host has a power state; see wait_for_preemption.

        :returns: the EnergyHost
        """
        return self._wait(_energy.EnergyHost, host, state, {'failed'},
                          interval, wait, 'state')

    def set_energy_figures(self, host: _energy.EnergyHost | str, **figures: Any
                           ) -> _energy.EnergyFigures:
        """Set speed and power of a host.

        :param host: name of the host
        :param figures: flops, watts, idle_watts, source
        :returns: the new EnergyFigures
        """
        return self._change(_energy.EnergyFigures, host, figures)

    def delete_energy_figures(self, host: _energy.EnergyHost | str,
                              ignore_missing: bool = True) -> None:
        """Delete the stored speed and power of a host.

        :param host: name of the host
        :param ignore_missing: do not raise NotFoundException
        """
        self._delete(_energy.EnergyFigures, resource.Resource._get_id(host),
                     ignore_missing)
