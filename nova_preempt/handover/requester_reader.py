# SPDX-License-Identifier: Apache-2.0

"""Checks that the requests which need victims' space still exist.

A user may delete the new server during its victims' notice. One query of
Nova's API database shows that for all waiting requests, even if cells are
down; see nova_preempt.cloud.instances.find_unwanted().

Our database has the reservations, and the headroom's state shows whether it is
still short.
"""

from collections.abc import Callable, Collection, Iterable
import datetime
import threading
import time

from oslo_utils import timeutils

from nova_preempt import exceptions
from nova_preempt import headroom
from nova_preempt.cloud import awaited_servers
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservations


class RequesterReader:
    """Reads which requested servers are not wanted any more.

    Implements nova_preempt.core.requester_liveness.RequesterView.

    :param find: given uuids, returns those of unwanted servers as a set
    :param monotonic, processor_time: the clocks to measure by
    :param clock: returns now, naive and in UTC
    :param are_hosts_emptied: returns whether hosts are drained for
        reservations
    """

    def __init__(self, find: Callable[[Collection[str]], Iterable[str]],
                 reservations: reservations.Reservations,
                 headroom: headroom.Headroom,
                 monotonic: Callable[[], float] = time.monotonic,
                 processor_time: Callable[[], float] = time.thread_time,
                 clock: Callable[[], datetime.datetime] = timeutils.utcnow,
                 are_hosts_emptied: Callable[[], bool] = lambda: True) -> None:
        self._reservations = reservations
        self._headroom = headroom
        self.are_hosts_emptied = are_hosts_emptied
        self.now = clock
        self._lock = threading.Lock()
        self._watched = awaited_servers.WaiterCounts()
        self._reading = awaited_servers.SharedReading(
            'which requests still exist',
            lambda uuids, now: dict.fromkeys(find(uuids), True),
            monotonic, processor_time)

    def add(self, uuids: Collection[str]) -> None:
        with self._lock:
            self._watched.add(uuids)
            self._reading.add(uuids)

    def remove(self, uuids: Collection[str]) -> None:
        with self._lock:
            self._reading.remove(self._watched.remove(uuids))

    def is_gone(self, server_uuid: str) -> bool:
        """Return whether an added server is not wanted any more.

        :raises NovaError: that is unknown
        """
        return bool(self._reading.get(
            server_uuid, awaited_servers.POLL_INTERVAL_S))

    def reservation(self, uuid: str) -> reservation_model.Reservation | None:
        try:
            found: reservation_model.Reservation = self._reservations.get(uuid)
        except exceptions.ReservationNotFound:
            return None
        return found

    def lacks_headroom(self, providers: Collection[str]) -> bool:
        return self._headroom.is_short(providers)
