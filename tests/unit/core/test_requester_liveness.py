# SPDX-License-Identifier: Apache-2.0
"""Preemptions whose request does not exist any more."""

import dataclasses
import datetime
import unittest

from nova_preempt.core import requester_liveness
from nova_preempt.core.reservation import reservation_model

START = datetime.datetime(2030, 1, 1)
END = START + datetime.timedelta(hours=1)
HELD = reservation_model.Reservation(
    'r', 'p', 1, 3600, START, 'delete', 0, start_at=START, end_at=END,
    hosts=(reservation_model.Assignment('node1', START, END),
           reservation_model.Assignment('node2', START, END,
                                        status=reservation_model.LOST)))
RESERVATION = requester_liveness.ServedRequest('reservation',
                                               reservation_uuid='r',
                                               node='node1')


class Cloud:

    def __init__(self, reservation=HELD, gone=(), short=(), emptied=True):
        self.found = reservation
        self.emptied = emptied
        self.gone = gone
        self.short = short

    def is_gone(self, server_uuid):
        return server_uuid in self.gone

    def are_hosts_emptied(self):
        return self.emptied

    def reservation(self, uuid):
        return self.found

    def lacks_headroom(self, providers):
        return bool(providers & self.short)


class TestWanted(unittest.TestCase):

    def why_not(self, purpose, now=START, **cloud):
        return requester_liveness.why_unneeded(purpose, Cloud(**cloud), now)

    def test_server(self):
        purpose = requester_liveness.ServedRequest('create', 's')
        self.assertEqual('', self.why_not(purpose, gone={'other'}))
        self.assertEqual(requester_liveness.SERVER_GONE,
                         self.why_not(purpose, gone={'s'}))

    def test_reservation(self):
        self.assertEqual('', self.why_not(RESERVATION))
        for status in set(reservation_model.STATUSES) - set(
            reservation_model.OPEN):
            self.assertEqual(
                f'reservation r is {status}', self.why_not(
                    RESERVATION, reservation=dataclasses.replace(
                        HELD, status=status)))
        self.assertEqual('reservation r is over',
                         self.why_not(RESERVATION, END))
        self.assertEqual('reservations were turned off',
                         self.why_not(RESERVATION, emptied=False))
        self.assertEqual('reservation r does not exist any more',
                         self.why_not(RESERVATION, reservation=None))

    def test_host_of_a_reservation_that_was_replaced(self):
        for node in ('node2', 'node3'):
            self.assertEqual(
                f'reservation r does not have host {node} any more',
                self.why_not(dataclasses.replace(RESERVATION, node=node)))

    def test_headroom(self):
        purpose = requester_liveness.ServedRequest('headroom',
                                                   providers=frozenset({'rp'}))
        self.assertEqual('', self.why_not(purpose, short={'rp'}))
        self.assertEqual('there is enough headroom without them',
                         self.why_not(purpose, short={'other'}))

    def test_evictions_that_cannot_be_withdrawn(self):
        for operation in ('maximum_runtime', 'simulate', 'repair'):
            self.assertEqual(
                '', self.why_not(requester_liveness.ServedRequest(operation)))
