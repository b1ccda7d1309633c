# SPDX-License-Identifier: Apache-2.0
"""The panels: their names, who sees them, and where their URLs are."""

from django.utils.translation import gettext_lazy as _
import horizon

from nova_preempt_dashboard.content import common


class _Panel(horizon.Panel):
    permissions = ('openstack.services.preemption',)


class Spot(_Panel):
    name = _('Spot')
    slug = 'spot'
    urls = 'spot.urls'
    policy_rules = common.rule('list')


class Reservations(_Panel):
    name = _('Reservations')
    slug = 'reservations'
    urls = 'reservations.urls'
    policy_rules = common.rule('reservation:list')


class Backlog(_Panel):
    name = _('Backlog')
    slug = 'backlog'
    urls = 'backlog.urls'
    policy_rules = common.rule('request:list')


class Preemptions(_Panel):
    name = _('Preemptions')
    slug = 'preemptions'
    urls = 'preemptions.urls'
    policy_rules = common.rule('all_projects')


class HostMap(_Panel):
    name = _('Host Map')
    slug = 'preemption_hosts'
    urls = 'host_map.urls'
    policy_rules = common.rule('host:list')


class Energy(_Panel):
    name = _('Energy')
    slug = 'preemption_energy'
    urls = 'energy.urls'
    policy_rules = common.rule('energy')


class Pauses(_Panel):
    name = _('Pauses')
    slug = 'preemption_pauses'
    urls = 'pauses.urls'
    policy_rules = common.rule('pause:list')


class Health(_Panel):
    name = _('Health')
    slug = 'preemption_health'
    urls = 'health.urls'
    policy_rules = common.rule('all_projects')
