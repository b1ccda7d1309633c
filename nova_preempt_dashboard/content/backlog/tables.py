# SPDX-License-Identifier: Apache-2.0
"""Tables of waiting requests and of the history of one."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from nova_preempt_dashboard import client
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common


def why(request):
    return (request.waits_for or {}).get('text') or request.reason or '-'


def estimate(request):
    return ('-' if request.estimate_s is None
            else words.duration(request.estimate_s))


class Create(tables.LinkAction):
    name = 'create'
    verbose_name = _('Submit Request')
    url = 'horizon:project:backlog:create'
    classes = ('ajax-modal',)
    icon = 'plus'
    policy_rules = common.rule('request:create')


class Cancel(tables.DeleteAction):
    policy_rules = common.rule('request:delete')
    help_text = _('Servers that it has started keep running.')

    @staticmethod
    def action_present(count):
        return ngettext_lazy('Cancel Request', 'Cancel Requests', count)

    @staticmethod
    def action_past(count):
        return ngettext_lazy('Cancelled Request', 'Cancelled Requests', count)

    def allowed(self, request, datum=None):
        return datum is None or datum.status in words.OPEN_REQUESTS

    def delete(self, request, obj_id):
        client.preemption(request).cancel_request(obj_id)


class Requests(common.PagedTable):
    name = common.column(
        words.name_of, _('Name'), link='horizon:project:backlog:detail')
    status = common.column(
        'status', _('Status'), display_choices=words.REQUEST.items())
    servers = common.column(
        lambda item: f'{len(item.servers)} / {item.count}',
        _('Servers, of requested'))
    flavors = common.column(
        lambda item: ', '.join(each['name'] for each in item.flavors),
        _('Flavors'))
    position = common.column('position', _('Place in the queue'))
    why = common.column(why, _('Why it waits'))
    estimate = common.column(estimate, _('Estimated wait'))

    class Meta:
        name = 'requests'
        verbose_name = _('My requests, newest first')
        table_actions = (Create, Cancel)
        row_actions = (Cancel,)

    def get_object_display(self, datum):
        return words.name_of(datum)


class History(tables.DataTable):
    at = common.column('at', _('Time'), words.moment)
    status = common.column(
        lambda item: words.of(words.REQUEST, item['status']), _('Status'))
    reason = common.column('reason', _('Reason'))

    class Meta:
        name = 'history'
        verbose_name = _('History')
        hidden_title = False
        multi_select = False

    def get_object_id(self, datum):
        return datum['at']
