# SPDX-License-Identifier: Apache-2.0
"""The page of subsystems, and the form that pauses one."""

import types

from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import forms
from horizon import messages
from horizon import tables

from nova_preempt_dashboard import client
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common

_INDEX = reverse_lazy('horizon:admin:preemption_pauses:index')


class Pause(tables.LinkAction):
    name = 'pause'
    verbose_name = _('Pause')
    url = 'horizon:admin:preemption_pauses:pause'
    classes = ('ajax-modal', 'btn-danger')
    icon = 'pause'
    policy_rules = common.rule('pause')

    def allowed(self, request, datum=None):
        return datum is None or not datum.paused


class Resume(tables.BatchAction):
    """Resumes a subsystem."""

    name = 'resume'
    icon = 'play'
    policy_rules = common.rule('pause')

    @staticmethod
    def action_present(count):
        return ngettext_lazy('Resume', 'Resume', count)

    @staticmethod
    def action_past(count):
        return ngettext_lazy('Resumed', 'Resumed', count)

    def allowed(self, request, datum=None):
        return datum is None or datum.paused

    def action(self, request, obj_id):
        client.preemption(request).resume(obj_id)


class Subsystems(tables.DataTable):
    what = common.column(
        lambda item: words.of(words.SUBSYSTEM, item.id), _('Subsystem'))
    state = common.column(
        lambda item: _('Paused') if item.paused else _('Running'), _('State'))
    since = common.column('since', _('Since'), words.moment)
    reason = common.column('reason', _('Reason'))
    user = common.column('user', _('Paused by user'))

    class Meta:
        name = 'subsystems'
        verbose_name = _('Subsystems')
        multi_select = False
        row_actions = (Pause, Resume)

    def get_object_display(self, datum):
        return str(words.of(words.SUBSYSTEM, datum.id))


class IndexView(tables.DataTableView):
    table_class = Subsystems
    template_name = 'nova_preempt/pauses.html'
    page_title = _('Pauses')

    def get_data(self):
        found = common.call(self.request, _('Unable to list pauses.'),
                            client.preemption(self.request).pauses)
        if found is None:
            return []
        paused = {item.what: item for item in found}
        users = common.names(self.request, 'users', [
            item.user_id for item in found])
        return [_row(what, paused.get(what), users)
                for what in words.SUBSYSTEM]


def _row(what, pause, users):
    return types.SimpleNamespace(
        id=what, paused=pause is not None, since=pause and pause.since,
        reason=pause and pause.reason, user=pause and users[pause.user_id])


class PauseForm(common.Form):
    """The reason of a pause."""

    reason = forms.CharField(label=_('Reason'), max_length=255)

    def handle(self, request, data):
        what = self.initial['what']
        if self.send(self.api.pause, what, data['reason']) is None:
            return False
        messages.success(request, _('Paused: %(what)s.') % {
            'what': words.of(words.SUBSYSTEM, what)})
        return True


class PauseView(common.FormView):
    form_class = PauseForm
    form_id = 'pause'
    modal_id = 'pause_modal'
    page_title = _('Pause')
    submit_label = _('Pause')
    success_url = _INDEX
    help_texts = (
        _('While it is paused nothing new is begun: no preemption, no '
          'reservation, no change of power, or no start from the backlog. '
          'What has begun goes on.'),)

    def get_initial(self):
        return {'what': self.kwargs['what']}
