# SPDX-License-Identifier: Apache-2.0
"""The page of power and energy."""

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from nova_preempt_dashboard import client
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import timeline
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common


class Retry(tables.BatchAction):
    """Boots a host again that has failed to boot."""

    name = 'retry'
    policy_rules = common.rule('energy:retry')

    @staticmethod
    def action_present(count):
        return ngettext_lazy('Retry Boot', 'Retry Boots', count)

    @staticmethod
    def action_past(count):
        return ngettext_lazy('Retried boot of', 'Retried boots of', count)

    def allowed(self, request, datum=None):
        return datum is None or datum.state == 'failed'

    def action(self, request, obj_id):
        client.preemption(request).retry_energy_host(obj_id)


def _figures(item):
    found = item.figures or {}
    if not found.get('flops_per_watt'):
        return '-'
    return _('%(value).3g per watt (%(source)s)') % {
        'value': found['flops_per_watt'], 'source': found.get('source', '')}


class Hosts(common.PagedTable):
    name = common.column('name', _('Host'))
    state = common.column(
        lambda item: words.of(words.POWER_STATE, item.state), _('Power state'))
    since = common.column('since', _('Since'), words.moment)
    reason = common.column('reason', _('Reason'))
    watts = common.column('watts_now', _('Watts'))
    figures = common.column(_figures, _('Operations'))

    class Meta:
        name = 'energy_hosts'
        verbose_name = _('Hosts')
        multi_select = False
        row_actions = (Retry,)


class IndexView(common.PagedView):
    table_class = Hosts
    template_name = 'nova_preempt/energy.html'
    page_title = _('Energy')
    failure = _('Unable to list hosts.')
    listing = 'energy_host_page'

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        api = self.api
        energy = common.call(self.request, _('Unable to read the energy.'),
                             api.energy, timezone.now())
        report = energy and common.call(
            self.request, _('Unable to read the report.'), api.energy_report)
        if energy:
            context['facts'] = _facts(energy, report)
        if report:
            context.update(
                chart=report.series and timeline.chart(
                    [(periods.parse(point['time']), point['watts'])
                     for point in report.series],
                    periods.parse(report.since),
                    periods.parse(report.until)),
                chart_title=_('Power draw of the last week in watts'))
        return context


def _facts(energy, report):
    """Return facts: of now, and of the week of the report if there is one."""
    found = [
        (_('Power draw now'), _('unknown') if energy.watts is None
         else _('%(watts)s W') % {'watts': round(energy.watts)}),
        (_('Measured'), words.moment(energy.sampled_at)),
        *((words.of(words.POWER_STATE, state), _('%(count)s hosts') % {
            'count': count}) for state, count in energy.hosts.items())]
    if report:
        found += [
            (_('Used in the last 7 days'), f'{report.used_kwh:.1f} kWh'),
            (_('Saved in the last 7 days'), f'{report.saved_kwh:.1f} kWh')]
    return found
