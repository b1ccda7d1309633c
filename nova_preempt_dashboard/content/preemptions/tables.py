# SPDX-License-Identifier: Apache-2.0
"""Tables of preemptions, of their victims and of alternatives."""

from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common


def placed(item):
    """Return the server for which others are evicted, in words."""
    if not item.server:
        return '-'
    return f'{item.server["id"]} ({item.server["flavor"]})'


class Preemptions(common.PagedTable):
    created_at = common.column(
        'created_at', _('Decided'), words.moment,
        link='horizon:admin:preemptions:detail')
    operation = common.column('operation', _('Operation'))
    server = common.column(placed, _('For'))
    victims = common.column(lambda item: len(item.victims), _('Victims'))
    host = common.column('host', _('Host'))
    cost = common.column('cost_us', _('Cost'), words.microseconds)
    status = common.column(
        'status', _('Status'), display_choices=words.PREEMPTION.items())

    class Meta:
        name = 'preemptions'
        verbose_name = _('Preemptions, newest first')
        multi_select = False

    def get_object_display(self, datum):
        return datum.id


class Victims(tables.DataTable):
    server = common.column(
        'server_id', _('Server'), link='horizon:admin:instances:detail')
    project = common.column('project', _('Project'))
    flavor = common.column('flavor', _('Flavor'))
    status = common.column(
        lambda item: words.of(words.VICTIM, item['status']), _('Status'))
    cost = common.column('cost_us', _('Cost'), words.microseconds)
    deadline = common.column('deadline', _('End of its notice'), words.moment)

    class Meta:
        name = 'victims'
        verbose_name = _('Victims')
        hidden_title = False
        multi_select = False

    def get_object_id(self, datum):
        return datum['server_id']


class Alternatives(tables.DataTable):
    place = common.column('place', _('Place'))
    host = common.column('host', _('Host'))
    count = common.column(lambda item: len(item['victims']), _('Victims'))
    cost = common.column('cost_us', _('Cost'), words.microseconds)
    servers = common.column(
        lambda item: ', '.join(item['victims']), _('Servers'))
    chosen = common.column(
        lambda item: _('Chosen') if item['chosen'] else '', _('Choice'))

    class Meta:
        name = 'alternatives'
        verbose_name = _('Alternatives, cheapest first')
        hidden_title = False
        multi_select = False

    def get_object_id(self, datum):
        return f'{datum["place"]}'
