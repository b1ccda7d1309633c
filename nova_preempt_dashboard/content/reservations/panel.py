# SPDX-License-Identifier: Apache-2.0
"""Panel of the reservations of a project."""

from django.utils.translation import gettext_lazy as _
import horizon

from nova_preempt_dashboard.content import common


class Reservations(horizon.Panel):
    name = _('Reservations')
    slug = 'reservations'
    permissions = ('openstack.services.preemption',)
    policy_rules = common.rule('reservation:list')
