# SPDX-License-Identifier: Apache-2.0
"""Pages of the preemptible servers of a project."""

from concurrent import futures
import datetime

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import notices
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content.spot import tables as own

#: The period of the numbers of evictions.
PERIOD = datetime.timedelta(days=30)


class IndexView(common.PagedView):
    table_class = own.Evictions
    template_name = 'nova_preempt/spot.html'
    page_title = _('Spot')
    failure = _('Unable to list evictions.')
    listing = 'preemptions'

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        found = common.call(self.request, _('Unable to list servers.'),
                            self.api.servers, default=())
        # Those with notice first.
        servers = sorted((item for item in found if notices.is_preemptible(
            item, self.api.marks)), key=lambda item: notices.of(item) is None)
        context.update(
            servers_table=own.Servers(self.request, data=servers),
            count=len(servers),
            noticed=sum(notices.of(item) is not None for item in servers))
        return context


class ChancesView(common.ApiMixin, tables.DataTableView):
    table_class = own.ChancesTable
    template_name = 'nova_preempt/chances.html'
    page_title = _('Chances before You Boot')

    def get_data(self):
        return common.call(self.request, _('Unable to read the chances.'),
                           self._read, default=[])

    def _read(self):
        names = {flavor.id: flavor.name for flavor in self.api.flavors()
                 if notices.is_preemptible_flavor(flavor, self.api.marks)}
        ids = sorted(names, key=names.get)
        since = periods.to_text(timezone.now() - PERIOD)
        # At the same time, as each is slow in a large cloud.
        with futures.ThreadPoolExecutor() as pool:
            counts = pool.submit(self.api.preemption_statistics, since=since)
            rates = pool.submit(self.api.eviction_rates, map(names.get, ids))
            found = self.api.placement_chances(ids)
        evicted = {item['flavor']: item for item in counts.result().flavors}
        rates = common.call(
            self.request, _('Unable to read the rates of evictions.'),
            rates.result, default={})
        for item in found:
            item.flavor_name = names.get(item.flavor, item.flavor)
            numbers = evicted.get(item.flavor_name, {})
            of_it = item.flavor_name, item.availability_zone
            day, month = (rates.get((*of_it, hours)) for hours in (24, 720))
            item.day = day and day.evicted_share
            item.month = month and month.evicted_share
            item.median_life = month and month.median_life
            item.evictions = numbers.get('victims', 0)
            item.lifetime = words.duration(numbers.get('mean_lifetime_s'))
        return found
