# SPDX-License-Identifier: Apache-2.0
"""The panels: their names, who sees them, and where their URLs are."""

from django.utils.translation import gettext_lazy as _
import horizon

from nova_preempt_dashboard.content import common


def _panel(slug, name, package, rule):
    """Return the class of a panel.

    :param package: its package beside this module
    :param rule: the policy rule of those who see it
    """
    return type(slug, (horizon.Panel,), {
        'slug': slug, 'name': name, 'urls': f'{package}.urls',
        'policy_rules': common.rule(rule),
        'permissions': ('openstack.services.preemption',)})


Spot = _panel('spot', _('Spot'), 'spot', 'list')
Reservations = _panel('reservations', _('Reservations'), 'reservations',
                      'reservation:list')
Backlog = _panel('backlog', _('Backlog'), 'backlog', 'request:list')
Preemptions = _panel('preemptions', _('Preemptions'), 'preemptions',
                     'all_projects')
HostMap = _panel('preemption_hosts', _('Host Map'), 'host_map', 'host:list')
Energy = _panel('preemption_energy', _('Energy'), 'energy', 'energy')
Pauses = _panel('preemption_pauses', _('Pauses'), 'pauses', 'pause:list')
Health = _panel('preemption_health', _('Health'), 'health', 'all_projects')
