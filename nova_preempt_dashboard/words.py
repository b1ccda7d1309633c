# SPDX-License-Identifier: Apache-2.0
"""Statuses, times and durations in words, in the language of the user."""

from django.utils import formats
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from nova_preempt_dashboard import periods

RESERVATION = {
    'pending': pgettext_lazy('reservation', 'Pending: it has not started'),
    'active': pgettext_lazy('reservation', 'Active: boot servers on it'),
    'degraded': pgettext_lazy('reservation', 'Degraded: hosts are missing'),
    'ended': pgettext_lazy('reservation', 'Ended'),
    'cancelled': pgettext_lazy('reservation', 'Cancelled'),
    'error': pgettext_lazy('reservation', 'Error'),
}
#: None is in progress, True good, False bad, as in tables of Horizon.
RESERVATION_LEVELS = (
    ('pending', True), ('active', True), ('degraded', False),
    ('ended', True), ('cancelled', True), ('error', False))
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


def choices(words):
    """Return words as the display_choices of a column."""
    return tuple(words.items())
