# SPDX-License-Identifier: Apache-2.0
"""Pages of the reservations of a project."""

import datetime

from django.urls import reverse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content.reservations import calendar
from nova_preempt_dashboard.content.reservations import forms
from nova_preempt_dashboard.content.reservations import tables as own

_INDEX = reverse_lazy('horizon:project:reservations:index')


class IndexView(common.PagedView):
    table_class = own.Reservations
    template_name = 'nova_preempt/reservations.html'
    page_title = _('Reservations')
    failure = _('Unable to list reservations.')
    listing = 'reservations'

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        days = _number(self.request, 'days', 7)
        days = days if days in calendar.SLOT_HOURS else 7
        quantity = max(1, _number(self.request, 'hosts', 1))
        drawn, free = common.call(
            self.request, _('Unable to read the calendar.'), calendar.read,
            self.api, timezone.now(), days, quantity, default=(None, ()))
        context.update(
            timeline=drawn, timeline_title=_('Calendar of hosts'),
            free=[(words.moment(since), words.moment(until),
                   calendar.create_url(since, until, quantity))
                  for since, until in free],
            days=days, all_days=list(calendar.SLOT_HOURS), hosts=quantity,
            slot_hours=calendar.SLOT_HOURS[days],
            limits=common.call(
                self.request, _('Unable to read the limits.'),
                self.api.reservation_limits))
        return context


def _number(request, name, default):
    try:
        return int(request.GET.get(name, default))
    except ValueError:
        return default


def _time(request, name):
    """Return a time of the query, None if there is no such time."""
    try:
        found = periods.parse(request.GET.get(name))
    except ValueError:
        return None
    return (found if found and periods.EARLIEST <= found <= periods.LATEST
            else None)


class CreateView(common.FormView):
    form_class = forms.Create
    form_id = 'create_reservation'
    modal_id = 'create_reservation_modal'
    page_title = _('Reserve Hosts')
    submit_label = _('Reserve')
    success_url = _INDEX
    help_texts = (
        _('A reservation gives your project whole hosts for a period.'),
        _('Fill in how many hosts you need, from when and for how long, and '
          'press Reserve. The reservation is pending until its start. Once '
          'it is active, choose "Boot Servers on It" in the list.'),
        _('Until the start preemptible servers may use the hosts.'))

    def get_initial(self):
        initial = super().get_initial()
        start, end = (_time(self.request, name) for name in ('start', 'end'))
        if start:
            initial['start'] = start
        if start and end and end > start:
            initial['hours'] = round((end - start) / datetime.timedelta(
                hours=1), 2)
        quantity = _number(self.request, 'quantity', 0)
        if quantity > 0:
            initial['quantity'] = quantity
        return initial


class _OfOne(common.ApiMixin):
    """The reservation that the address of a page names."""

    success_url = _INDEX

    @cached_property
    def reservation(self):
        return common.get(
            self.request, _('Unable to read the reservation.'), _INDEX,
            self.api.reservation, self.kwargs['reservation_id'])


class UpdateView(_OfOne, common.FormView):
    form_class = forms.Update
    form_id = 'update_reservation'
    modal_id = 'update_reservation_modal'
    page_title = _('Change Reservation')
    submit_label = _('Save Changes')
    help_texts = (
        _('An earlier end of an active reservation ends its servers '
          'earlier, too.'),)

    def get_initial(self):
        return {
            'reservation_id': self.reservation.id,
            'name': self.reservation.name,
            'end': periods.parse(self.reservation.end_at),
            'end_action': self.reservation.end_action}


class BootView(_OfOne, common.FormView):
    form_class = forms.Boot
    form_id = 'boot_on_reservation'
    modal_id = 'boot_on_reservation_modal'
    page_title = _('Boot Servers on a Reservation')
    submit_label = _('Boot')
    help_texts = (
        _('The servers are placed on the hosts of the reservation and on no '
          'others. At its end they are shelved or deleted, as the '
          'reservation says.'),)

    def get_initial(self):
        return {'reservation_id': self.reservation.id,
                'name': self.reservation.name or 'server'}

    def get_success_url(self):
        return reverse('horizon:project:reservations:detail',
                       args=(self.reservation.id,))


class DetailView(_OfOne, tables.DataTableView):
    table_class = own.Servers
    template_name = 'nova_preempt/reservation.html'
    page_title = _('Reservation {{ reservation.name|default:reservation.id }}')

    def get_data(self):
        hosts = {host['host_id'] for host in self.reservation.hosts}
        servers = common.call(
            self.request, _('Unable to list servers.'),
            self.api.servers, default=())
        return [server for server in servers
                if self.reservation.id in _hinted(server)
                and (server.host_id in hosts or not server.host_id)]

    def get_context_data(self, **kwargs):
        item = self.reservation
        context = super().get_context_data(reservation=item, **kwargs)
        context['facts'] = [
            (_('Id'), item.id),
            (_('Status'), words.RESERVATION.get(item.status, item.status)),
            (_('Reason'), item.reason or '-'),
            (_('Hosts'), item.quantity),
            (_('Start'), words.moment(item.start_at)),
            (_('End'), words.moment(item.end_at)),
            (_('Filter of hosts'), item.host_properties or '-'),
            (_('At the end'), item.end_action),
            (_('Hosts held'), ', '.join(
                f'{host["name"][:20]} ({host["status"]})'
                for host in item.hosts) or '-')]
        return context


def _hinted(server):
    """Return the ids of reservations in the hint of a server."""
    hint = (server.scheduler_hints or {}).get('reservation', ())
    return hint if isinstance(hint, list) else [hint]
