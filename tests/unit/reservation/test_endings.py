# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Hosts are free of the servers of a reservation when it has ended."""

from nova_preempt.db import booking
from nova_preempt.termination import nova_api
from tests.unit.reservation import life
from tests.unit.reservation.life import HOUR_S


class TestAtTheEnd(life.ChoresTestCase):

    def setUp(self):
        super().setUp()
        self.cloud.add_host('h1')

    def run_it(self, **values):
        self.reserve('h1', start_s=0, **values)
        self.look()
        self.look()
        self.assertEqual(booking.ACTIVE, self.get().status)

    def end_it(self):
        self.pass_time((self.get().end_at - self.now).total_seconds())

    def test_deletes_its_servers_only(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', takes_s=20)
        self.cloud.boot('alien', 'h1')
        self.cloud.boot('spot', 'h1', preemptible=True)
        self.look()
        self.assertEqual([], self.cloud.asked)
        self.end_it()
        self.look()
        self.assertIsNone(self.get().released_at)
        self.look_until(20)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)
        self.assertEqual((booking.ENDED, self.now),
                         (self.get().status, self.get().released_at))
        self.assertEqual(1, self.logger.output.count('Server alien'))
        self.assertNotIn('Server spot', self.logger.output)

    def test_shelves(self):
        self.run_it(end_action='shelve')
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.end_it()
        self.look_until(30)
        self.assertEqual([('shelve', 'mine'), ('shelve_offload', 'mine')],
                         self.cloud.asked)
        self.assertIsNotNone(self.get().released_at)

    def test_again_and_again_but_not_for_ever(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', stubborn=True)
        self.end_it()
        self.look_until(595, 10)
        self.assertEqual(60 * [('force_delete', 'mine')], self.cloud.asked)
        self.assertEqual(booking.ENDED, self.get().status)
        self.look_until(5)
        self.assertEqual((booking.ERROR, self.now),
                         (self.get().status, self.get().released_at))
        self.assertEqual('servers did not leave in 600 s: mine (active) on '
                         'h1', self.get().reason)
        self.assertEqual('error', self.told()[-1])

    def test_servers_that_nova_cannot_shelve(self):
        self.run_it(end_action='shelve')
        self.cloud.boot('mine', 'h1', reservation='r1', vm_state='rescued')
        self.end_it()
        self.look_until(600)
        self.assertEqual([], self.cloud.asked)
        self.assertEqual(booking.ERROR, self.get().status)

    def test_cancelled(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.reservations.update('r1', status=booking.CANCELLED)
        self.look_until(10)
        self.assertEqual((booking.CANCELLED, {'h1': booking.READY}),
                         (self.get().status, self.statuses()))
        self.assertIsNotNone(self.get().released_at)
        self.assertEqual(set(), self.cloud.on('h1'))
        self.assertEqual(('end', booking.CANCELLED, None),
                         self.events.told[-1])

    def test_the_next_one_waits_for_it(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', takes_s=30)
        self.reserve('h1', uuid='r2', start_s=HOUR_S)
        self.look_until(HOUR_S - 1)
        self.assertEqual([], self.cloud.asked)
        self.look_until(1)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)
        self.look_until(35)
        self.assertEqual(booking.ACTIVE, self.get('r2').status)
        self.assertEqual(('h1',), self.get('r2').held)

    def test_services_that_are_away(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.end_it()
        self.cloud.away = True
        self.assertRaises(nova_api.NovaError, self.look)
        # It ended in time all the same.
        self.assertEqual(('end', booking.ENDED, 0.0), self.events.told[-1])
        self.cloud.away = False
        self.look_until(20)
        self.assertIsNotNone(self.get().released_at)
