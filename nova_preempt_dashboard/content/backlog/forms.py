# SPDX-License-Identifier: Apache-2.0
"""The form that submits a request for servers that waits for capacity."""

from django.utils.translation import gettext_lazy as _
from horizon import forms
from horizon import messages

from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content import server_fields


class Create(server_fields.ServerForm):
    """Servers, and how long the request for them waits."""

    api_fields = {'longest_wait_s': 'longest_wait_h', 'flavors': 'flavor'}

    second_flavor = forms.ChoiceField(
        label=_('Second flavor'), required=False,
        help_text=_('It is used where the first flavor does not fit.'))
    least_count = forms.IntegerField(
        label=_('Start with at least'), min_value=1, required=False,
        help_text=_('The request starts as soon as that many servers fit, '
                    'and the others follow. Empty: all start together.'))
    longest_wait_h = forms.FloatField(
        label=_('Longest wait in hours'), min_value=1 / 60,
        max_value=periods.MOST_HOURS, required=False,
        help_text=_('After that the request expires.'))
    comes_back = forms.BooleanField(
        label=_('Start evicted servers again'), required=False)
    reservation = forms.ChoiceField(
        label=_('On the hosts of a reservation'), required=False)

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields['second_flavor'].choices = [
            ('', _('None')), *self.fields['flavor'].choices]
        found = common.call(request, _('Unable to list reservations.'),
                            self._reservations, default=[])
        self.fields['reservation'].choices = [('', _('None')), *found]

    def _reservations(self):
        return [(item.id, words.name_of(item))
                for item in self.api.reservations(100).items
                if item.status in words.OPEN_RESERVATIONS]

    def handle(self, request, data):
        values = {'name': data['name'], 'count': data['count'],
                  'comes_back': data['comes_back'], 'flavors': list(
                      dict.fromkeys(filter(None, (
                          data['flavor'], data['second_flavor'])))),
                  'body': self._body(data)}
        if data['least_count']:
            values['least_count'] = data['least_count']
        if data['longest_wait_h']:
            values['longest_wait_s'] = round(data['longest_wait_h'] * 3600)
        found = self.send(self.api.create_request, **values)
        if found is None:
            return False
        messages.success(request, _('The request is in the backlog.'))
        return found

    @staticmethod
    def _body(data):
        network = data['network']
        server = {'name': data['name'], 'imageRef': data['image'],
                  'networks': network if network in ('auto', 'none') else [
                      {'uuid': network}]}
        if data['key_name']:
            server['key_name'] = data['key_name']
        body = {'server': server}
        if data['reservation']:
            body['os:scheduler_hints'] = {'reservation': data['reservation']}
        return body
