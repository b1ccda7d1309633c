# SPDX-License-Identifier: Apache-2.0
"""Forms to create and change a reservation, and to boot servers on it."""

import datetime
import json

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from horizon import forms
from horizon import messages

from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content import server_fields

_END_ACTIONS = (('shelve', _('Shelve its servers, which keeps their disks')),
                ('delete', _('Delete its servers')))


class Create(common.Form):
    """The fields of a reservation: its hosts and its period."""

    api_fields = {'duration': 'hours', 'start_time': 'start',
                  'end_time': 'latest_end', 'host_properties': 'host_filter'}

    name = forms.CharField(label=_('Name'), max_length=255, required=False)
    quantity = forms.IntegerField(
        label=_('Number of hosts'), min_value=1, initial=1)
    start = common.moment_field(
        _('Start'), _('Leave it empty to start now.'), required=False)
    hours = forms.FloatField(
        label=_('Length in hours'), min_value=1 / 60,
        max_value=periods.MOST_HOURS, initial=1)
    latest_end = common.moment_field(
        _('Latest end'), _('If it is set, the reservation may start later '
                           'than at its start, as long as it ends by then.'),
        required=False)
    vcpus = forms.IntegerField(
        label=_('vCPUs of each host, at least'), min_value=1, required=False)
    host_filter = forms.CharField(
        label=_('Filter of hosts'), required=False,
        help_text=_('JSON, such as ["in", "HW_CPU_X86_AVX2", "$traits"].'),
        widget=forms.Textarea(attrs={'rows': 2}))
    end_action = forms.ChoiceField(
        label=_('At the end'), choices=_END_ACTIONS)
    check = forms.BooleanField(
        label=_('Only check whether it is possible'), required=False)

    def clean_host_filter(self):
        text = self.cleaned_data['host_filter'].strip()
        if not text:
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ValidationError(
                _('This is no JSON: %(error)s'), params={'error': exc}
            ) from None
        if not isinstance(found, list):
            raise ValidationError(_('A filter is a list in JSON.'))
        return found

    def handle(self, request, data):
        values = _request(data)
        if data['check']:
            self._check(values)
            return False
        if data['name']:
            values['name'] = data['name']
        found = self.send(self.api.create_reservation,
                          end_action=data['end_action'], **values)
        if found is None:
            return False
        messages.success(request, _(
            'Reserved hosts: %(hosts)s, from %(start)s to %(end)s.') % {
                'hosts': found.quantity, 'start': words.moment(found.start_at),
                'end': words.moment(found.end_at)})
        return found

    def _check(self, values):
        found = self.send(self.api.preview_reservation, **values)
        if found is None:
            return
        if found.possible:
            self.set_warning(_(
                'It is possible from %(start)s to %(end)s. To reserve, clear '
                '"Only check" and press Reserve.') % {
                    'start': words.moment(found.start_at),
                    'end': words.moment(found.end_at)})
        else:
            self.set_warning(_('It is not possible: not enough hosts are '
                               'free then.'))


def _request(data):
    """Return the values of the API for the fields of the form."""
    values = {'quantity': data['quantity'],
              'duration': round(data['hours'] * 3600)}
    if data['start']:
        values['start_time'] = periods.to_text(data['start'])
    if data['latest_end']:
        values['end_time'] = periods.to_text(data['latest_end'])
    elif data['start']:
        # Exactly then, and not later.
        values['end_time'] = periods.to_text(
            data['start'] + datetime.timedelta(
                seconds=values['duration']))
    filters = [item for item in (
        data['vcpus'] and ['>=', '$vcpus', data['vcpus']],
        data['host_filter']) if item]
    if filters:
        values['host_properties'] = (
            ['and', *filters] if len(filters) > 1 else filters[0])
    return values


class Update(common.Form):
    """The members of a reservation that can change."""

    api_fields = {'end_at': 'end'}

    name = forms.CharField(label=_('Name'), max_length=255, required=False)
    end = common.moment_field(_('End'), _(
        'A later end is possible if the same hosts are free until then.'))
    end_action = forms.ChoiceField(
        label=_('At the end'), choices=_END_ACTIONS)

    def handle(self, request, data):
        changes = {'end_action': data['end_action']}
        if 'end' in self.changed_data:
            changes['end_at'] = periods.to_text(data['end'])
        if data['name']:
            changes['name'] = data['name']
        found = self.send(self.api.update_reservation,
                          self.initial['reservation_id'], **changes)
        if found is None:
            return False
        messages.success(request, _('The reservation is changed.'))
        return found


class Boot(server_fields.ServerForm):
    """Servers that are booted on the hosts of a reservation."""

    def handle(self, request, data):
        found = self.send(
            self.api.create_server, scheduler_hints={
                'reservation': self.initial['reservation_id']},
            **self.server(data))
        if found is None:
            return False
        messages.success(request, _(
            'Nova boots the servers on the hosts of the reservation.'))
        return found
