# SPDX-License-Identifier: Apache-2.0
"""The map of hosts, and a page for each."""

import datetime
import urllib.parse

from django import http
from django.urls import reverse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from horizon import messages
from horizon import views

from nova_preempt_dashboard import host_kinds
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import timeline
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common

_INDEX = reverse_lazy('horizon:admin:preemption_hosts:index')
_DAYS = 14


def host_url(name):
    query = urllib.parse.urlencode({'name': name})
    return f'{reverse("horizon:admin:preemption_hosts:host")}?{query}'


def _power_states(request, api):
    """Return {name of a host: EnergyHost}."""
    found = common.call(request, _('Unable to read power states.'),
                        api.energy_hosts, default=())
    return {item.name: item for item in found}


class IndexView(common.ApiMixin, views.HorizonTemplateView):
    template_name = 'nova_preempt/host_map.html'
    page_title = _('Host Map')

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        now = timezone.now()
        hosts = common.call(self.request, _('Unable to list hosts.'),
                            self.api.hosts, default=(), **periods.at(now))
        power = _power_states(self.request, self.api) if hosts else {}
        kinds = [(host, host_kinds.kind(
            host, getattr(power.get(host.name), 'state', None), now))
            for host in hosts]
        chosen = self.request.GET.get('kind', '')
        context.update(
            total=len(kinds), chosen=chosen,
            counts=[(kind, words.HOST[kind], count) for kind, count
                    in host_kinds.count(kind for _host, kind in kinds)],
            hosts=[(host, kind, words.HOST[kind], host_url(host.name))
                   for host, kind in kinds if chosen in ('', kind)])
        return context


class HostView(common.ApiMixin, views.HorizonTemplateView):
    template_name = 'nova_preempt/host.html'
    page_title = _('Host {{ host.name }}')

    @cached_property
    def host(self):
        return common.get(
            self.request, _('Unable to read the host.'), _INDEX,
            self.api.host, self.request.GET.get('name', ''))

    def post(self, request):
        """Set whether the host can be reserved."""
        reservable = request.POST.get('reservable') == 'true'
        found = common.get(
            request, _('Unable to change the host.'), _INDEX,
            self.api.update_host, self.host.name, reservable=reservable)
        text = _('%(host)s can be reserved now.') if reservable else _(
            '%(host)s cannot be reserved any more.')
        messages.success(request, text % {'host': found.name})
        return http.HttpResponseRedirect(host_url(found.name))

    def get_context_data(self, **kwargs):
        host = self.host
        now = timezone.now()
        power = _power_states(self.request, self.api).get(host.name)
        kind = host_kinds.kind(host, power and power.state, now)
        names = common.names(self.request, 'projects', [
            each['project_id'] for each in host.reservations])
        return super().get_context_data(
            host=host, kind=kind, kind_words=words.HOST[kind],
            reasons=_reasons(host, power, now, names),
            timeline=_draw(host, now, names),
            timeline_title=_('Reservations of this host'),
            facts=[(name, value if value not in ('', None) else '-')
                   for name, value in sorted(host.properties.items())
                   if not isinstance(value, list)], **kwargs)


def _reasons(host, power, now, names):
    """Yield sentences that say why the host is of its kind.

    :param names: {id of a project: its name}
    """
    if power:
        yield gettext('Power: %(state)s since %(since)s. %(reason)s') % {
            'state': words.of(words.POWER_STATE, power.state),
            'since': words.moment(power.since), 'reason': power.reason or ''}
    yield gettext('Its compute service is %(state)s and %(status)s.') % {
        'state': host.state, 'status': host.status}
    yield gettext('%(count)s servers run on it.') % {
        'count': host.running_servers}
    yield (gettext('All of them can be evicted.') if host.vacant else
           gettext('Some of them are normal servers, or cannot be evicted.'))
    booking = host_kinds.active_booking(host, now)
    if booking:
        yield gettext('Reservation %(id)s of project %(project)s holds it '
                      'until %(end)s.') % {
            'id': booking['id'], 'project': names[booking['project_id']],
            'end': words.moment(booking['end_at'])}
    yield (gettext('It can be reserved.') if host.reservable else
           gettext('It cannot be reserved.'))


def _draw(host, now, names):
    start = now.replace(minute=0, second=0, microsecond=0)
    bars = tuple(
        timeline.Bar(
            periods.parse(item['start_at']), periods.parse(item['end_at']),
            item['status'], item['id'][:8],
            gettext('Reservation %(id)s of project %(project)s, %(start)s to '
                    '%(end)s') % {
                'id': item['id'], 'project': names[item['project_id']],
                'start': words.moment(item['start_at']),
                'end': words.moment(item['end_at'])})
        for item in host.reservations)
    return timeline.draw([timeline.Row(host.name, bars)], start,
                         start + datetime.timedelta(days=_DAYS), now)
