# SPDX-License-Identifier: Apache-2.0
"""Tables of reservations and of the servers on one."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from nova_preempt_dashboard import client
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common


def name_of(reservation):
    return reservation.name or reservation.id


def period_of(reservation):
    return _('%(start)s to %(end)s') % {
        'start': words.moment(reservation.start_at),
        'end': words.moment(reservation.end_at)}


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
    name = tables.Column(
        name_of, verbose_name=_('Name'),
        link='horizon:project:reservations:detail')
    status = tables.Column(
        'status', verbose_name=_('Status'), status=True,
        status_choices=(('pending', None), *(
            item for item in words.RESERVATION_LEVELS
            if item[0] != 'pending')),
        display_choices=words.choices(words.RESERVATION))
    hosts = tables.Column('quantity', verbose_name=_('Hosts'))
    period = tables.Column(period_of, verbose_name=_('Period'))
    reason = tables.Column('reason', verbose_name=_('Reason'))

    class Meta:
        name = 'reservations'
        verbose_name = _('My reservations')
        row_class = UpdateRow
        status_columns = ['status']
        table_actions = (Create, Delete)
        row_actions = (Boot, Update, Delete)

    def get_object_display(self, datum):
        return name_of(datum)


class Servers(tables.DataTable):
    name = tables.Column('name', verbose_name=_('Name'),
                         link='horizon:project:instances:detail')
    status = tables.Column('status', verbose_name=_('Status'))
    flavor = tables.Column(lambda server: server.flavor['original_name'],
                           verbose_name=_('Flavor'))
    vcpus = tables.Column(lambda server: server.flavor['vcpus'],
                          verbose_name=_('vCPUs'), summation='sum')

    class Meta:
        name = 'servers'
        verbose_name = _('Servers on it')
        multi_select = False
