# SPDX-License-Identifier: Apache-2.0
"""Pages of the preemptions of all projects."""

import datetime

from django.urls import reverse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import periods
from nova_preempt_dashboard import timeline
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content.preemptions import tables as own

_INDEX = reverse_lazy('horizon:admin:preemptions:index')
_OVER = ('done', 'rolled_back', 'aborted', 'refused')
_LEAST_SPAN = datetime.timedelta(hours=1)


class IndexView(common.PagedView):
    table_class = own.Preemptions
    template_name = 'nova_preempt/preemptions.html'
    page_title = _('Preemptions')
    failure = _('Unable to list preemptions.')
    listing = 'preemptions'
    query = {'all_projects': True}

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        if self.table.data:
            context.update(timeline=_draw(self.table.data, timezone.now()),
                           timeline_title=_('Preemptions of this page'))
        return context


def _draw(items, now):
    """Return the timeline.Timeline of preemptions, by host."""
    bars = {}
    for item in items:
        start = periods.parse(item.created_at)
        over = item.status in _OVER
        end = periods.parse(item.updated_at) if over else now
        status = words.of(words.PREEMPTION, item.status)
        title = gettext('%(start)s on %(host)s: %(status)s, %(count)s '
                        'victims') % {
            'start': words.moment(start), 'host': item.host,
            'status': status, 'count': len(item.victims)}
        bars.setdefault(item.host, []).append(timeline.Bar(
            start, max(end, start), 'ended' if over else 'degraded',
            str(len(item.victims)), title,
            reverse('horizon:admin:preemptions:detail', args=(item.id,))))
    starts = [bar.start for found in bars.values() for bar in found]
    last = max(max(bar.end for bar in found) for found in bars.values())
    end = last + datetime.timedelta(minutes=1)
    start = min(min(starts), end - _LEAST_SPAN)
    return timeline.draw([timeline.Row(host or '-', tuple(found))
                          for host, found in sorted(bars.items())],
                         start, end, now)


class DetailView(common.ApiMixin, tables.DataTableView):
    table_class = own.Alternatives
    template_name = 'nova_preempt/preemption.html'
    page_title = _('Preemption {{ item.id }}')

    @cached_property
    def item(self):
        return common.get(
            self.request, _('Unable to read the preemption.'), _INDEX,
            self.api.preemption, self.kwargs['preemption_id'])

    def get_data(self):
        considered = (self.item.record or {}).get('considered', ())
        return [{**each, 'place': place,
                 'chosen': each['host'] == self.item.host}
                for place, each in enumerate(considered, 1)]

    def get_context_data(self, **kwargs):
        item = self.item
        record = item.record or {}
        project_id = (item.server or {}).get('project_id')
        names = common.names(self.request, 'projects', [
            project_id, *(each['project_id'] for each in item.victims)])
        return super().get_context_data(
            item=item, why=record.get('why', ''),
            victims_table=own.Victims(self.request, data=[
                {**each, 'project': names.get(each['project_id'])}
                for each in item.victims]),
            facts=[
                (_('Decided'), words.moment(item.created_at)),
                (_('Status'), words.of(words.PREEMPTION, item.status)),
                (_('Reason'), item.reason or '-'),
                (_('Operation'), item.operation),
                (_('For'), own.placed(item)),
                (_('Project'), names.get(project_id, '-')),
                (_('Host'), item.host),
                (_('Cost'), words.microseconds(item.cost_us)),
                (_('Cost function'), record.get('cost', '-')),
                (_('Request'), item.request_id or '-')], **kwargs)
