# SPDX-License-Identifier: Apache-2.0
"""Tables of reservations and of the servers on one."""

import datetime

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from nova_preempt_dashboard import client
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common

#: Reservations that start so soon are read again and again.
SOON = datetime.timedelta(minutes=1)


def period_of(reservation):
    return _('%(start)s to %(end)s') % {
        'start': words.moment(reservation.start_at),
        'end': words.moment(reservation.end_at)}


def status_of(reservation):
    """Return the status, "starting" if it is due: such rows are polled."""
    due = periods.parse(reservation.start_at) <= timezone.now() + SOON
    return ('starting' if reservation.status == 'pending' and due
            else reservation.status)


class Create(tables.LinkAction):
    name = 'create'
    verbose_name = _('Reserve Hosts')
    url = 'horizon:project:reservations:create'
    classes = ('ajax-modal',)
    icon = 'plus'
    policy_rules = common.rule('reservation:create')


class Boot(tables.LinkAction):
    name = 'boot'
    verbose_name = _('Boot Servers on It')
    url = 'horizon:project:reservations:boot'
    classes = ('ajax-modal',)
    policy_rules = (('compute', 'os_compute_api:servers:create'),)

    def allowed(self, request, reservation=None):
        return reservation is None or reservation.status in (
            'active', 'degraded')


class Update(tables.LinkAction):
    name = 'update'
    verbose_name = _('Change')
    url = 'horizon:project:reservations:update'
    classes = ('ajax-modal',)
    icon = 'pencil'
    policy_rules = common.rule('reservation:update')

    def allowed(self, request, reservation=None):
        return (reservation is None
                or reservation.status in words.OPEN_RESERVATIONS)


class Delete(tables.DeleteAction):
    policy_rules = common.rule('reservation:delete')
    help_text = _('An active reservation ends at once, and its servers are '
                  'shelved or deleted.')

    @staticmethod
    def action_present(count):
        return ngettext_lazy('Cancel Reservation', 'Cancel Reservations',
                             count)

    @staticmethod
    def action_past(count):
        return ngettext_lazy('Cancelled Reservation',
                             'Cancelled Reservations', count)

    def allowed(self, request, reservation=None):
        return (reservation is None
                or reservation.status in words.OPEN_RESERVATIONS)

    def delete(self, request, obj_id):
        client.preemption(request).delete_reservation(obj_id)


class UpdateRow(tables.Row):
    """Reads a reservation again until it has started."""

    ajax = True

    def get_data(self, request, reservation_id):
        return client.preemption(request).reservation(reservation_id)


class Reservations(common.PagedTable):
    name = common.column(
        words.name_of, _('Name'), link='horizon:project:reservations:detail')
    status = common.column(
        status_of, _('Status'), status=True,
        status_choices=words.RESERVATION_LEVELS,
        display_choices=words.RESERVATION.items())
    hosts = common.column('quantity', _('Hosts'))
    period = common.column(period_of, _('Period'))
    reason = common.column('reason', _('Reason'))

    class Meta:
        name = 'reservations'
        verbose_name = _('My reservations')
        hidden_title = False
        row_class = UpdateRow
        status_columns = ['status']
        table_actions = (Create, Delete)
        row_actions = (Boot, Update, Delete)

    def get_object_display(self, datum):
        return words.name_of(datum)


class Servers(tables.DataTable):
    name = common.column(
        'name', _('Name'), link='horizon:project:instances:detail')
    status = common.column('status', _('Status'))
    flavor = common.column(
        lambda server: server.flavor['original_name'], _('Flavor'))
    vcpus = common.column(
        lambda server: server.flavor['vcpus'], _('vCPUs'), summation='sum')

    class Meta:
        name = 'servers'
        verbose_name = _('Servers on it')
        hidden_title = False
        multi_select = False
