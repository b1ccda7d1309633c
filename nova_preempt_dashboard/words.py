# SPDX-License-Identifier: Apache-2.0
"""Statuses, times and durations in words, in the language of the user."""

from django.utils import formats
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from nova_preempt_dashboard import periods

RESERVATION = {
    'pending': pgettext_lazy('reservation', 'Pending: it has not started'),
    'starting': pgettext_lazy('reservation', 'Pending: it starts now'),
    'active': pgettext_lazy('reservation', 'Active: boot servers on it'),
    'degraded': pgettext_lazy('reservation', 'Degraded: hosts are missing'),
    'ended': pgettext_lazy('reservation', 'Ended'),
    'cancelled': pgettext_lazy('reservation', 'Cancelled'),
    'error': pgettext_lazy('reservation', 'Error'),
}
#: True is good, False bad; a row of another status is read again and again.
RESERVATION_LEVELS = (
    *dict.fromkeys(('pending', 'active', 'ended', 'cancelled'), True).items(),
    ('degraded', False), ('error', False))
OPEN_RESERVATIONS = ('pending', 'active', 'degraded')

REQUEST = {
    'waiting': pgettext_lazy('request', 'Waiting'),
    'placing': pgettext_lazy('request', 'Starting'),
    'active': pgettext_lazy('request', 'Active: all servers run'),
    'partly_active': pgettext_lazy('request', 'Partly active'),
    'evicted': pgettext_lazy('request', 'Evicted: its servers may come back'),
    'done': pgettext_lazy('request', 'Done'),
    'failed': pgettext_lazy('request', 'Failed'),
    'cancelled': pgettext_lazy('request', 'Cancelled'),
    'expired': pgettext_lazy('request', 'Expired'),
}
OPEN_REQUESTS = ('waiting', 'placing', 'active', 'partly_active', 'evicted')

PREEMPTION = {
    'intent': pgettext_lazy('preemption', 'Decided'),
    'claimed': pgettext_lazy('preemption', 'Notice is given'),
    'rolling_back': pgettext_lazy('preemption', 'Is being withdrawn'),
    'done': pgettext_lazy('preemption', 'Done'),
    'rolled_back': pgettext_lazy('preemption', 'Withdrawn'),
    'aborted': pgettext_lazy('preemption', 'Given up'),
    'refused': pgettext_lazy('preemption', 'Refused'),
}

HOST = {
    'normal': pgettext_lazy('host', 'Normal servers'),
    'preemptible': pgettext_lazy('host', 'Preemptible servers'),
    'free': pgettext_lazy('host', 'Free'),
    'reserved': pgettext_lazy('host', 'Reserved'),
    'asleep': pgettext_lazy('host', 'Asleep'),
    'down': pgettext_lazy('host', 'Down or disabled'),
}

SUBSYSTEM = {
    'preemption': _('Preemption'),
    'reservations': _('Reservations'),
    'power': _('Power control'),
    'backlog': _('Backlog'),
}


def moment(value):
    """Return a time of the API in the time zone of the user."""
    found = periods.parse(value) if isinstance(value, str) else value
    if not found:
        return '-'
    local = timezone.localtime(found)
    return f'{formats.date_format(local, "Y-m-d H:i")} {local:%Z}'


def duration(seconds):
    return periods.duration(seconds) or '-'


VICTIM = {
    'pending': pgettext_lazy('victim', 'Gets notice'),
    'noticed': pgettext_lazy('victim', 'Has notice'),
    'ending': pgettext_lazy('victim', 'Is being ended'),
    'gone': pgettext_lazy('victim', 'Deleted'),
    'shelved': pgettext_lazy('victim', 'Shelved: you can unshelve it'),
    'stopped': pgettext_lazy('victim', 'Stopped'),
    'migrated': pgettext_lazy('victim', 'Migrated: it runs elsewhere'),
    'kept': pgettext_lazy('victim', 'Kept: its eviction was withdrawn'),
    'restored': pgettext_lazy('victim', 'Restored: it runs again'),
    'left': pgettext_lazy('victim', 'Ended by others'),
}

ACTION = {
    'delete': pgettext_lazy('action', 'deleted'),
    'shelve': pgettext_lazy('action', 'shelved'),
    'stop': pgettext_lazy('action', 'stopped'),
    'migrate': pgettext_lazy('action', 'migrated'),
}

RECOMMENDATION = {
    'reservation': _('Its host is reserved from %(time)s'),
    'headroom': _('Little capacity is free (valid until %(time)s)'),
}

POWER_STATE = {
    'on': pgettext_lazy('power', 'On'),
    'emptying': pgettext_lazy('power', 'Being emptied'),
    'sleeping': pgettext_lazy('power', 'Falling asleep'),
    'asleep': pgettext_lazy('power', 'Asleep'),
    'waking': pgettext_lazy('power', 'Waking up'),
    'failed': pgettext_lazy('power', 'Failed to boot'),
}


def microseconds(value):
    """Return a cost in microseconds as a duration."""
    return '-' if value is None else duration(value / 1e6)


def name_of(item):
    """Return the name of a reservation or a request, its id without one."""
    return item.name or item.id


def of(words, key):
    """Return the words of a status, or the status itself."""
    return words.get(key, key)
