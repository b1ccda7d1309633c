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
"""Hosts are empty when a reservation starts, and free when it has ended."""

import datetime
from types import SimpleNamespace

import fixtures
import hypothesis
from hypothesis import strategies as st

from nova_preempt import exceptions
from nova_preempt.db import models
from nova_preempt.db import reservations as db
from nova_preempt.reservation import chores
from nova_preempt.reservation import emptying
from nova_preempt.reservation import endings
from nova_preempt.reservation import evacuation
from nova_preempt.reservation import repairs
from nova_preempt.termination import nova_api
from tests.unit.reservation import life
from tests.unit.reservation.life import HOUR_S

LEAD_S = 900


class ChoresTestCase(life.LifeTestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.options = SimpleNamespace(
            evacuation_lead_s=LEAD_S, end_timeout_s=600, host_grace_s=120)
        self.begin()

    def begin(self):
        """A new cloud, and an engine that knows nothing."""
        self.cloud = life.Cloud(self.clock)
        self.chores = self.make_chores()

    def make_chores(self):
        cloud = self.cloud
        hosts = SimpleNamespace(
            hosts=cloud.hosts_now, occupancy=cloud,
            consumers=cloud.consumers, is_vacant=cloud.is_vacant)
        self.moments = self.make_moments()
        moves = evacuation.Evacuation(cloud, cloud, self.clock)
        return chores.Chores(
            self.reservations, self.moments, hosts,
            emptying.Emptying(cloud.preemption(), cloud, self.options, hosts,
                              moves, self.clock),
            moves, repairs.Repairs(self.reservations, hosts, self.events,
                                   self.options, self.clock),
            endings.Endings(self.reservations, cloud, cloud, self.events,
                            self.options, self.clock), self.clock)

    def look(self):
        self.cloud.run()
        self.moments.run()
        return self.chores.run()

    def look_until(self, seconds, step_s=15):
        """Look again and again for so long, in seconds from now."""
        end = self.now + datetime.timedelta(seconds=seconds)
        while self.now < end:
            self.look()
            self.pass_time(min(step_s, (end - self.now).total_seconds()))
        self.look()

    def told(self):
        return [event for event, *_rest in self.events.told]

    def statuses(self, uuid='r1'):
        return {host.host: host.status for host in self.get(uuid).hosts}


class TestBeforeTheStart(ChoresTestCase):

    def test_nothing_to_do(self):
        self.assertEqual(chores.IDLE_S, self.look())
        # Nova is not even asked.
        self.cloud.away = True
        self.assertEqual(chores.IDLE_S, self.look())

    def test_preemptible_servers_stay_until_their_notice(self):
        self.cloud.add_host('h1')
        self.cloud.boot('short', 'h1', preemptible=True, notice_s=30,
                        takes_s=120)
        self.cloud.boot('long', 'h1', preemptible=True, notice_s=300,
                        takes_s=120)
        self.reserve('h1')
        start = self.get().start_at
        self.look_until(HOUR_S)
        self.assertEqual(
            {'long': 450, 'short': 180},
            {uuid: (start - when).total_seconds()
             for uuid, when in self.cloud.noticed.items()})
        self.assertEqual([('start', db.ACTIVE, 0.0)], self.events.told)

    def test_those_with_the_same_notice_end_together(self):
        self.cloud.add_host('h1')
        for uuid in ('a', 'b', 'c'):
            self.cloud.boot(uuid, 'h1', preemptible=True, notice_s=30)
        self.cloud.boot('d', 'h1', preemptible=True, task_state='resizing')
        self.reserve('h1', start_s=100)
        self.look()
        self.look()
        self.assertEqual([('reservation', 'a', 'b', 'c')], self.cloud.asked)

    def test_normal_servers_are_moved(self):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', takes_s=300)
        self.cloud.boot('s', 'h1', vm_state='stopped')
        self.reserve('h1')
        self.look_until(HOUR_S - LEAD_S - 1)
        self.assertEqual([], self.cloud.asked)
        self.look_until(LEAD_S + 1)
        self.assertEqual(
            [('live_migrate', 'n'), ('cold_migrate', 's'),
             ('confirm_resize', 's')], self.cloud.asked)
        self.assertEqual([('start', db.ACTIVE, 0.0)], self.events.told)
        self.assertEqual('stopped', self.cloud.servers['s'].vm_state)

    def test_what_cannot_be_moved_is_tried_again(self):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', movable=False)
        self.reserve('h1', start_s=LEAD_S)
        self.look_until(60)
        self.assertEqual(3 * [('live_migrate', 'n')], self.cloud.asked)
        self.assertEqual(1, self.logger.output.count(
            'Server n cannot be moved: No valid host'))
        self.cloud.servers['n'].movable = True
        self.look_until(LEAD_S - 60)
        self.assertEqual(db.ACTIVE, self.get().status)

    def test_newcomers_are_noticed(self):
        """A host that was empty is looked at until the start."""
        self.cloud.add_host('h1')
        self.reserve('h1')
        self.look_until(HOUR_S - 600)
        self.assertEqual({'h1': db.READY}, self.statuses())
        self.cloud.boot('late', 'h1', preemptible=True, notice_s=30)
        self.look()
        self.assertEqual({'h1': db.EMPTYING}, self.statuses())
        self.look_until(600)
        self.assertEqual([('start', db.ACTIVE, 0.0)], self.events.told)

    def test_what_only_placement_knows(self):
        """A server that is being built, or a move that is not confirmed."""
        self.cloud.add_host('h1')
        self.cloud.foreign['h1'].add('building')
        self.reserve('h1')
        self.look_until(HOUR_S - 1)
        self.assertEqual(db.PENDING, self.get().status)
        self.look_until(1)
        self.assertEqual((db.DEGRADED, ()),
                         (self.get().status, self.get().held))
        self.assertIn('host h1 is not empty: allocations of building',
                      self.get().reason)
        self.assertEqual(['degraded'], self.told())

    def test_another_host_in_its_place(self):
        for name in ('h1', 'h2', 'h3', 'h4'):
            self.cloud.add_host(name)
        self.cloud.boot('n', 'h1', movable=False)
        self.cloud.boot('n2', 'h2')
        self.cloud.boot('p', 'h3', preemptible=True)
        self.reserve('h4', uuid='other', start_s=0, duration_s=9 * HOUR_S)
        self.reserve('h1')
        self.look_until(HOUR_S - 1)
        self.assertEqual(('h1',), self.get().held)
        self.look_until(200)
        self.assertEqual(('h3',), self.get().held)
        self.assertEqual(db.ACTIVE, self.get().status)
        self.assertIn('host h1 is not empty: servers n (No valid host)',
                      next(host.reason for host in self.get().hosts))
        self.assertIn('n', self.cloud.on('h1'))

    def test_an_empty_host_is_preferred(self):
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)
        self.cloud.boot('n', 'h1', movable=False)
        self.cloud.boot('p', 'h2', preemptible=True)
        self.reserve('h1')
        self.look_until(HOUR_S + 10)
        self.assertEqual(('h3',), self.get().held)
        self.assertEqual({'p'}, self.cloud.on('h2'))
        (_event, status, late_s), = self.events.told
        self.assertEqual(db.ACTIVE, status)
        self.assertLessEqual(late_s, 2 * chores.IDLE_S)

    def test_properties_are_those_asked_for(self):
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)
        self.cloud.boot('n', 'h1', movable=False)
        self.reserve('h1', host_properties=[
            'in', '$hypervisor_hostname', 'h1', 'h3'])
        self.look_until(HOUR_S + 10)
        self.assertEqual(('h3',), self.get().held)

    # Not shrunk: an example is half an hour of a life.
    @hypothesis.settings(max_examples=8, deadline=None, derandomize=True,
                         phases=[hypothesis.Phase.generate])
    @hypothesis.given(
        servers=st.lists(st.tuples(
            st.integers(0, 300), st.integers(0, 120)), max_size=6),
        normal=st.lists(st.integers(0, LEAD_S - 30), max_size=3),
        restarts=st.lists(st.integers(1, 1800), max_size=3))
    def test_hosts_are_empty_at_the_start(self, servers, normal, restarts):
        """Whatever notice servers have, and whenever the engine restarts.

        :param servers: [(notice_s, how long the end takes then)]
        :param normal: how long moves take
        :param restarts: how many seconds before the start
        """
        self.now += datetime.timedelta(days=1)
        with self.database._writer() as session:
            for model in (models.ReservationHost, models.Reservation):
                session.query(model).delete()
        self.events.told.clear()
        self.begin()
        self.cloud.add_host('h1')
        for number, (notice_s, takes_s) in enumerate(servers):
            self.cloud.boot(f'p{number}', 'h1', preemptible=True,
                            notice_s=notice_s, takes_s=takes_s)
        for number, takes_s in enumerate(normal):
            self.cloud.boot(f'n{number}', 'h1', takes_s=takes_s)
        self.reserve('h1', start_s=1801)
        passed = 0
        for before_s in sorted(restarts, reverse=True):
            self.look_until(1801 - before_s - passed)
            passed = 1801 - before_s
            self.chores = self.make_chores()
        self.look_until(1801 - passed)
        self.assertEqual([('start', db.ACTIVE, 0.0)], self.events.told)
        self.assertEqual(set(), self.cloud.on('h1'))
        start = self.get().start_at
        for number, (notice_s, _takes_s) in enumerate(servers):
            early_s = (start - self.cloud.noticed[f'p{number}']
                       ).total_seconds() - notice_s
            self.assertLessEqual(early_s, 120 + emptying.MARGIN_S)


class TestAtTheEnd(ChoresTestCase):

    def setUp(self):
        super().setUp()
        self.cloud.add_host('h1')

    def run_it(self, **values):
        self.reserve('h1', start_s=0, **values)
        self.look()
        self.look()
        self.assertEqual(db.ACTIVE, self.get().status)

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
        self.assertEqual((db.ENDED, self.now),
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
        self.assertEqual(db.ENDED, self.get().status)
        self.look_until(5)
        self.assertEqual((db.ERROR, self.now),
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
        self.assertEqual(db.ERROR, self.get().status)

    def test_cancelled(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.reservations.update('r1', status=db.CANCELLED)
        self.look_until(10)
        self.assertEqual((db.CANCELLED, {'h1': db.READY}),
                         (self.get().status, self.statuses()))
        self.assertIsNotNone(self.get().released_at)
        self.assertEqual(set(), self.cloud.on('h1'))
        self.assertEqual(('end', db.CANCELLED, None), self.events.told[-1])

    def test_the_next_one_waits_for_it(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', takes_s=30)
        self.reserve('h1', uuid='r2', start_s=HOUR_S)
        self.look_until(HOUR_S - 1)
        self.assertEqual([], self.cloud.asked)
        self.look_until(1)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)
        self.look_until(35)
        self.assertEqual(db.ACTIVE, self.get('r2').status)
        self.assertEqual(('h1',), self.get('r2').held)

    def test_services_that_are_away(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.end_it()
        self.cloud.away = True
        self.assertRaises(nova_api.NovaError, self.look)
        # It ended in time all the same.
        self.assertEqual(('end', db.ENDED, 0.0), self.events.told[-1])
        self.cloud.away = False
        self.look_until(20)
        self.assertIsNotNone(self.get().released_at)


class TestDeadHosts(ChoresTestCase):

    def setUp(self):
        super().setUp()
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)

    def test_replaced_after_a_grace(self):
        for down in ({'state': 'down'}, {'status': 'disabled'}, None):
            self.reserve('h1', uuid=str(down))
            if down is None:
                del self.cloud.hosts['h1']
            else:
                self.cloud.add_host('h1', **down)
            self.look_until(115)
            self.assertEqual(('h1',), self.get(str(down)).held)
            self.look_until(5)
            found = self.get(str(down))
            self.assertNotEqual(('h1',), found.held)
            self.assertEqual(db.PENDING, found.status)
            self.reservations.update(str(down), status=db.CANCELLED)
            self.cloud.add_host('h1')
            self.look()
        self.assertEqual([], self.told())
        self.assertIn('host h1 is gone', self.logger.output)

    def test_a_restart_is_no_death(self):
        self.reserve('h1')
        for _ in range(3):
            self.cloud.add_host('h1', state='down')
            self.look_until(100)
            self.cloud.add_host('h1')
            self.look_until(100)
        self.assertEqual({'h1': db.ASSIGNED}, self.statuses())

    def test_while_it_is_active(self):
        self.reserve('h1', start_s=0)
        self.look_until(5)
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.cloud.boot('spot', 'h2', preemptible=True, notice_s=30)
        self.cloud.boot('n', 'h3')
        self.cloud.add_host('h1', state='down')
        self.look_until(120)
        self.assertEqual(('h2',), self.get().held)
        self.look_until(60)
        self.assertEqual({'h1': db.LOST, 'h2': db.READY}, self.statuses())
        self.assertEqual(db.ACTIVE, self.get().status)
        self.assertEqual({'mine'}, self.cloud.on('h1'))
        self.assertIn('Servers on it are not moved', self.logger.output)
        # Its servers are cleared away from lost hosts too.
        self.pass_time(HOUR_S)
        self.look_until(10)
        self.assertEqual(set(), self.cloud.on('h1'))

    def test_own_servers_on_a_new_host(self):
        """They may come before the host is empty."""
        self.reserve('h1', start_s=0)
        self.look_until(5)
        self.cloud.add_host('h1', state='down')
        self.cloud.boot('n', 'h3')
        self.cloud.boot('spot', 'h2', preemptible=True, takes_s=30)
        self.look_until(120)
        self.cloud.boot('mine', 'h2', reservation='r1')
        self.look_until(60)
        self.assertEqual({'mine'}, self.cloud.on('h2'))
        self.assertEqual({'h1': db.LOST, 'h2': db.READY}, self.statuses())

    def test_degraded_and_repaired(self):
        self.reserve('h1', 'h2', 'h3')
        self.cloud.add_host('h3', state='down')
        self.look_until(120)
        found = self.get()
        self.assertEqual((db.DEGRADED, ('h1', 'h2')),
                         (found.status, found.held))
        self.assertEqual('1 of 3 hosts are missing: the compute service of '
                         'host h3 is down', found.reason)
        self.look_until(HOUR_S)
        self.assertEqual(['degraded', 'start'], self.told())
        self.cloud.add_host('h4')
        self.look_until(5)
        found = self.get()
        self.assertEqual((db.ACTIVE, ('h1', 'h2', 'h4'), ''),
                         (found.status, found.held, found.reason))

    def test_somebody_is_faster(self):
        self.reserve('h1', host_properties=[
            'in', '$hypervisor_hostname', 'h1', 'h2'])
        self.cloud.add_host('h1', state='down')
        real = self.reservations.replace_host

        def replace_host(uuid, old, new=None, reason=''):
            if new is not None:
                raise exceptions.NoHostsForReservation('taken')
            return real(uuid, old, new, reason)

        self.reservations.replace_host = replace_host
        self.look_until(125)
        self.assertEqual((db.DEGRADED, ()),
                         (self.get().status, self.get().held))
