# SPDX-License-Identifier: Apache-2.0
"""Pages of the waiting requests of a project."""

from django.urls import reverse_lazy
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common
from nova_preempt_dashboard.content.backlog import forms
from nova_preempt_dashboard.content.backlog import tables as own

_INDEX = reverse_lazy('horizon:project:backlog:index')


class IndexView(common.PagedView):
    table_class = own.Requests
    template_name = 'nova_preempt/backlog.html'
    page_title = _('Backlog')
    failure = _('Unable to list requests.')
    listing = 'requests'


class CreateView(common.FormView):
    form_class = forms.Create
    form_id = 'create_request'
    modal_id = 'create_request_modal'
    page_title = _('Submit Request')
    submit_label = _('Submit')
    success_url = _INDEX
    help_texts = (
        _('A request waits in the backlog until there is space for its '
          'servers. Then they are started in your name, in your project.'),)


class DetailView(common.ApiMixin, tables.DataTableView):
    table_class = own.History
    template_name = 'nova_preempt/facts_and_table.html'
    page_title = _('Request {{ item.name|default:item.id }}')

    @cached_property
    def item(self):
        return common.get(
            self.request, _('Unable to read the request.'), _INDEX,
            self.api.request,
            self.kwargs['request_id'])

    def get_data(self):
        return self.item.history

    def get_context_data(self, **kwargs):
        item = self.item
        return super().get_context_data(item=item, facts=[
            (_('Id'), item.id),
            (_('Status'), words.of(words.REQUEST, item.status)),
            (_('Why it waits'), own.why(item)),
            (_('Place in the queue'), item.position or '-'),
            (_('Estimated wait'), own.estimate(item)),
            (_('Servers'), ', '.join(
                f'{each["id"]} ({each["status"]})'
                for each in item.servers) or '-'),
            (_('Servers requested'), item.count),
            (_('Start with at least'), item.least_count),
            (_('Flavors'), ', '.join(each['name'] for each in item.flavors)),
            (_('Longest wait'), words.duration(item.longest_wait_s)),
        ], **kwargs)
