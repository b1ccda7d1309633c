# SPDX-License-Identifier: Apache-2.0
"""Tells of reservations on the message bus, and in metrics."""

from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.handover import preemption_notifications

# Of the payload; see nova_preempt.handover.preemption_notifications.VERSION.
VERSION = '1.0'

_TIME = '%Y-%m-%dT%H:%M:%SZ'


class ReservationNotifications:
    """Tells of reservations.

    :param conf, host: see
        nova_preempt.handover.preemption_notifications.Notifier
    """

    def __init__(self, conf, host):
        self._notifier = preemption_notifications.Notifier(conf, host)
        self.close = self._notifier.close

    def start(self, reservation, late_s):
        """Tell that a reservation has started.

        :param late_s: how many seconds after its start that is
        """
        metrics.RESERVATIONS_LATE.labels('start').observe(late_s)
        self._emit('start', reservation)

    def before_end(self, reservation):
        """Tell that the end of a reservation is near."""
        self._emit('before_end', reservation)

    def end(self, reservation, late_s=None):
        """It is over: it has ended, or was cancelled after its start.

        :param late_s: how many seconds after its end that is, None if it was
            cancelled
        """
        if late_s is not None:
            metrics.RESERVATIONS_LATE.labels('end').observe(late_s)
        self._emit('end', reservation)

    def degraded(self, reservation):
        """It has fewer hosts than it should have; its reason says why."""
        self._emit('degraded', reservation)

    def error(self, reservation):
        """Tell that servers were not cleared away; its reason names them."""
        self._emit('error', reservation)

    def _emit(self, event, reservation):
        self._notifier.send(f'reservation.{event}', make_payload(reservation),
                            event == 'error')


def make_payload(reservation):
    """The payload of a notification, as its documented samples have it.

    :param reservation: a
        nova_preempt.core.reservation.reservation_model.Reservation
    """
    return {
        'version': VERSION, 'reservation_id': reservation.uuid,
        'name': reservation.name, 'project_id': reservation.project_id,
        'user_id': reservation.user_id, 'status': reservation.status,
        'reason': reservation.reason, 'quantity': reservation.quantity,
        'start': f'{reservation.start_at:{_TIME}}',
        'end': f'{reservation.end_at:{_TIME}}',
        'end_action': reservation.end_action,
        'hosts': [{'name': host.host, 'status': host.status,
                   'reason': host.reason} for host in reservation.hosts],
        'generated_at': f'{timeutils.utcnow():{_TIME}}'}
