# SPDX-License-Identifier: Apache-2.0
"""Recommendations to leave, as guests read them."""

import json

from nova_preempt.advice import recommender
from nova_preempt.core.reservation import reservation_model
from tests.functional import guest
from tests.functional import test_reservations


class TestRecommendations(test_reservations.ReservationTestCase):

    def run_task(self):
        """Run the engine's task that gives and withdraws them."""
        self.engine.parts.known.refresh()
        task, = (work for group in self.engine._timed
                 for name, work, _ in group.tasks
                 if name == 'evictions: recommendations')
        self.assertEqual(recommender.INTERVAL_S, task())

    def read(self, server_id):
        """Return what a guest reads, '' if there is no recommendation."""
        inside = self.useFixture(guest.Guest(server_id, self.project))
        found = inside.read().get('meta', {}).get(recommender.KEY)
        return found and json.loads(found)['reason']

    def test_a_reservation_nears_and_is_cancelled(self):
        self.add_hosts('host1', 'host2')
        server, other = (self.boot_spot(name, name)
                         for name in ('host1', 'host2'))
        normal = self.boot_normal('n', host='host1')['id']
        reservation = self.reserve('host1', start_s=3601)
        self.run_task()
        self.assertIsNone(self.read(server))
        self.pass_time(1)
        self.run_task()
        self.assertEqual(['reservation', None, None], [
            self.read(each) for each in (server, other, normal)])
        self.reservations.update(reservation,
                                 status=reservation_model.CANCELLED)
        self.run_task()
        self.assertIsNone(self.read(server))

    def test_headroom_falls(self):
        self.flags(headroom='VCPU:1', group='preemption')
        self.add_hosts('host1')
        self.engine = self.start_engine()
        server = self.boot_spot('a', 'host1')
        self.run_task()
        # One of two processors is free, and two would be twice the headroom.
        self.assertEqual('headroom', self.read(server))
        self.assertEqual('ACTIVE', self.api.get_server(server)['status'])
