# SPDX-License-Identifier: Apache-2.0
"""Resources about energy: draw and state of hosts."""

from typing import Any, Self

from keystoneauth1 import adapter
from openstack import exceptions
from openstack import resource

from nova_preempt.sdk.v1 import _base


class _Totals(_base.SingletonResource):
    """Power draw and energy saved in a period."""

    _query_mapping = resource.QueryParameters(
        'since', 'until', include_pagination_defaults=False)

    since = resource.Body('since')
    #: Core-seconds that were on and unused, and core-seconds that were off.
    res_idle_core_s = resource.Body('res_idle_core_s')
    e_savings_core_s = resource.Body('e_savings_core_s')
    #: Waits of servers divided by their run times.
    delay_req = resource.Body('delay_req')
    used_kwh = resource.Body('used_kwh')
    saved_kwh = resource.Body('saved_kwh')


class Energy(_Totals):
    """Current power draw, and energy saved since a time."""

    resource_key = 'energy'
    base_path = '/energy'

    #: None if unknown.
    watts = resource.Body('watts')
    sampled_at = resource.Body('sampled_at')
    #: Numbers of hosts by power state, as a dict.
    hosts = resource.Body('hosts', type=dict)


class EnergyReport(_Totals):
    """Power draw and energy saved over time."""

    resource_key = 'report'
    base_path = '/energy/report'

    until = resource.Body('until')
    #: A dict for each point.
    series = resource.Body('series', type=list)


class EnergyHost(_base.Resource):
    """A host with its power state and figures."""

    resources_key = 'hosts'
    base_path = '/energy/hosts'

    allow_list = True
    allow_fetch = True

    _query_mapping = resource.QueryParameters(
        include_pagination_defaults=False)

    name = resource.Body('name', alternate_id=True)
    #: Such as on, asleep, waking or failed; since when, and the reason.
    state = resource.Body('state')
    since = resource.Body('since')
    reason = resource.Body('reason')
    idle_intervals = resource.Body('idle_intervals')
    #: Seconds that its last boot took.
    boot_s = resource.Body('boot_s')
    watts_now = resource.Body('watts_now')
    #: Speed and power as a dict, None if unknown.
    figures = resource.Body('figures', type=dict)

    def fetch(self, session: adapter.Adapter, *args: Any, **values: Any
              ) -> Self:
        """Fetch the current host from the list of all hosts."""
        for found in self.list(session):
            if found.name == self.id:
                return found
        raise exceptions.NotFoundException(
            f'There is no host {self.id!r} with energy data.')

    def retry(self, session: adapter.Adapter) -> None:
        """Retry the boot of the host."""
        request = self._prepare_request()
        exceptions.raise_from_response(session.post(
            f'{request.url}/retry',
            microversion=self._get_microversion(session)))


class EnergyFigures(_base.Resource):
    """Speed and power of a host."""

    resource_key = 'figures'
    base_path = '/energy/hosts'
    path_end = '/figures'

    allow_commit = True
    allow_delete = True
    commit_method = 'PUT'

    flops = resource.Body('flops')
    watts = resource.Body('watts')
    idle_watts = resource.Body('idle_watts')
    flops_per_watt = resource.Body('flops_per_watt')
    measured_at = resource.Body('measured_at')
    source = resource.Body('source')
