# SPDX-License-Identifier: Apache-2.0
"""The page of checks of the services."""

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import client
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content.health import checks

_LEVELS = (('good', _('Good')), ('warning', _('Look at it')),
           ('bad', _('Bad')))


class Checks(tables.DataTable):
    name = common.column('name', _('Check'))
    level = common.column('level', _('Result'), display_choices=_LEVELS)
    text = common.column('text', _('Details'))
    seconds = common.column('seconds', _('Seconds'))

    class Meta:
        name = 'checks'
        verbose_name = _('Checks, made just now')
        multi_select = False

    def get_object_id(self, datum):
        return datum.name


class IndexView(tables.DataTableView):
    table_class = Checks
    template_name = 'nova_preempt/health.html'
    page_title = _('Health')

    def get_data(self):
        return checks.run(client.preemption(self.request), timezone.now())
