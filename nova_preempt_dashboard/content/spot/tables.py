# SPDX-License-Identifier: Apache-2.0
"""Tables of preemptible servers, of evictions and of chances."""

from django.utils import html
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from horizon import tables

from nova_preempt_dashboard import notices
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words
from nova_preempt_dashboard.content import common


def _notice(server):
    found = notices.of(server)
    if found is None:
        return _('None')
    return html.format_html(
        '<strong>{}</strong>&nbsp;<time class="preempt-countdown" '
        'datetime="{}">{}</time>',
        _('It will be %(action)s (%(reason)s) at %(time)s, in') % {
            'action': words.of(words.ACTION, found.action),
            'reason': found.reason, 'time': words.moment(found.deadline)},
        periods.to_text(found.deadline), '…')


def _recommendation(server):
    reason, until = notices.recommendation(server, timezone.now()) or ('', '')
    return words.RECOMMENDATION.get(reason, _('None')) % {
        'time': words.moment(until)}


class Servers(tables.DataTable):
    name = common.column(
        'name', _('Name'), link='horizon:project:instances:detail')
    status = common.column('status', _('Status'))
    flavor = common.column(
        lambda server: server.flavor['original_name'], _('Flavor'))
    notice = common.column(_notice, _('Notice'))
    recommendation = common.column(_recommendation, _('Recommended to leave'))

    class Meta:
        name = 'servers'
        verbose_name = _('My preemptible servers')
        hidden_title = False
        multi_select = False


class Chances(tables.LinkAction):
    name = 'chances'
    verbose_name = _('Chances before You Boot')
    url = 'horizon:project:spot:chances'
    policy_rules = common.rule('placement_chances')


def _victims(preemption):
    return html.format_html_join('', '<div>{}</div>', ((
        _('%(server)s (%(flavor)s): %(status)s') % {
            'server': victim['server_id'], 'flavor': victim['flavor'],
            'status': words.of(words.VICTIM, victim['status'])},)
        for victim in preemption.victims))


class Evictions(common.PagedTable):
    created_at = common.column('created_at', _('Decided'), words.moment)
    operation = common.column('operation', _('For'))
    status = common.column(
        'status', _('Status'), display_choices=words.PREEMPTION.items())
    victims = common.column(_victims, _('What became of my servers'))

    class Meta:
        name = 'evictions'
        verbose_name = _('Evictions, newest first')
        hidden_title = False
        multi_select = False
        table_actions = (Chances,)


class ChancesTable(tables.DataTable):
    flavor = common.column('flavor_name', _('Flavor'))
    zone = common.column('availability_zone', _('Zone'))
    preemptible = common.column(
        'preemptible', _('Fit now, preemptible'), empty_value=_('unknown'))
    day = common.column(
        'day', _('Evicted per server-hour, 24 hours'),
        empty_value=_('unknown'))
    month = common.column(
        'month', _('Evicted per server-hour, 30 days'),
        empty_value=_('unknown'))
    median_life = common.column(
        'median_life', _('Median life of those evicted'),
        empty_value=_('unknown'))
    evictions = common.column('evictions', _('My evictions in 30 days'))
    lifetime = common.column(
        'lifetime', _('Mean life of mine that were evicted'))

    class Meta:
        name = 'chances'
        verbose_name = _('Preemptible flavors')
        multi_select = False

    def get_object_id(self, datum):
        return f'{datum.flavor}-{datum.availability_zone}'
