# SPDX-License-Identifier: Apache-2.0
"""The timeline of hosts: those of the project, and free ones."""

import datetime
import urllib.parse

from django.urls import reverse
from django.utils.translation import gettext as _

from nova_preempt_dashboard import api as apis
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import timeline
from nova_preempt_dashboard import words

#: {days that a timeline can have: hours of a slot of its free row}
SLOT_HOURS = {1: 2, 7: 12, 14: 24, 28: 48}
#: The most rows of hosts, and calls to find what is free.
MOST_ROWS = 50
MOST_CALLS = 10
_NOT_POSSIBLE = (400, 403, 409)


def read(api, now, days, quantity):
    """Return (timeline.Timeline, free stretches).

    :param now: an aware datetime
    :param days: the length, of SLOT_HOURS
    :param quantity: how many hosts have to be free at once
    :raises RequestFailed: the API does not answer
    """
    start = now.replace(minute=0, second=0, microsecond=0)
    end = start + datetime.timedelta(days=days)
    first = start + datetime.timedelta(hours=1)
    found = periods.slots(first, SLOT_HOURS[days] * 3600,
                          24 * days // SLOT_HOURS[days])
    answers = periods.free_slots(
        found, lambda since, until: _is_free(api, since, until, quantity),
        MOST_CALLS)
    free = periods.stretches(found, answers)
    mine = api.reservations_between(periods.to_text(start),
                                    periods.to_text(end))
    unknown = [slot for slot, answer in zip(found, answers, strict=True)
               if answer is None]
    rows = [timeline.Row(
        _('Free: %(count)s or more hosts') % {'count': quantity}, (
            *(_free_bar(since, until, quantity) for since, until in free),
            *(_unknown_bar(since, until) for since, until in unknown))),
        *_host_rows(mine)]
    return timeline.draw(rows, start, end, now), free


def _is_free(api, since, until, quantity):
    try:
        return api.preview_reservation(
            quantity=quantity, start_time=periods.to_text(since),
            end_time=periods.to_text(until)).possible
    except apis.RequestFailed as exc:
        # Above a limit of the project.
        if exc.status in _NOT_POSSIBLE:
            return False
        raise


def create_url(since, until, quantity):
    """Return the URL of the form that is filled with a free stretch."""
    query = urllib.parse.urlencode({
        'start': periods.to_text(since), 'end': periods.to_text(until),
        'quantity': quantity})
    return f'{reverse("horizon:project:reservations:create")}?{query}'


def _free_bar(since, until, quantity):
    return timeline.Bar(
        since, until, 'free', _('free'),
        _('Free from %(start)s to %(end)s: reserve') % {
            'start': words.moment(since), 'end': words.moment(until)},
        create_url(since, until, quantity))


def _unknown_bar(since, until):
    return timeline.Bar(
        since, until, 'unknown', '?',
        _('Not checked: %(start)s to %(end)s') % {
            'start': words.moment(since), 'end': words.moment(until)})


def _host_rows(reservations):
    """Return a row for each host of the reservations of the project."""
    bars = {}
    for item in reservations:
        if item.status not in words.OPEN_RESERVATIONS:
            continue
        for host in item.hosts:
            bars.setdefault(host['name'], []).append(_mine_bar(item, host))
    return [timeline.Row(_('Host %(name)s') % {'name': name[:20]},
                         tuple(found))
            for name, found in sorted(bars.items())[:MOST_ROWS]]


def _mine_bar(item, host):
    name = words.name_of(item)
    return timeline.Bar(
        periods.parse(host['start_at']), periods.parse(host['end_at']),
        item.status, name,
        _('Reservation %(name)s, %(start)s to %(end)s: %(status)s') % {
            'name': name, 'start': words.moment(host['start_at']),
            'end': words.moment(host['end_at']),
            'status': words.RESERVATION.get(item.status, item.status)},
        reverse('horizon:project:reservations:detail', args=(item.id,)))
