# SPDX-License-Identifier: Apache-2.0

"""The controller of open reservations."""

import dataclasses
import unittest

from nova_preempt.core.energy import host_classification
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model

START_S = 10_000
LEADS_S = (900, 180)


def reservation(*hosts, quantity=None, ready=False):
    """Return a reservation of hosts, each (name, status)."""
    start, end = reservation_model.from_s(START_S), reservation_model.from_s(
        2 * START_S)
    return reservation_model.Reservation(
        'r1', 'p', quantity or len(hosts), START_S, start, 'delete', 0,
        start_at=start, end_at=end, ready_at=start if ready else None,
        status=reservation_model.ACTIVE if ready
        else reservation_model.PENDING,
        hosts=tuple(reservation_model.Assignment(name, start, end, status)
                    for name, status in hosts))


def spot(uuid, **values):
    return drain_rules.Server(uuid,
                              **{'notice_s': 30, 'lead_s': 180, **values})


def normal(uuid, **values):
    return drain_rules.Server(uuid, lead_s=900, **values)


@dataclasses.dataclass
class View:
    """View of the cloud of a test."""

    reservation: reservation_model.Reservation
    there: dict = dataclasses.field(default_factory=dict)
    hosts: dict = dataclasses.field(default_factory=dict)
    others: tuple = ()
    down: tuple = ()
    lost: tuple = ()
    limits: tuple = ()
    ending: tuple = ()
    free: bool | None = True
    leads_s: tuple = LEADS_S
    running: dict = dataclasses.field(default_factory=dict)

    def host(self, name):
        return self.hosts.get(name, observed_hosts.Host(name))

    def servers(self, name):
        return self.there.get(name, ())

    def caps(self, servers):
        return self.limits

    def evicting(self):
        return self.ending

    def is_free(self, name, servers):
        return self.free

    def candidates(self):
        return self.others

    def former(self):
        return self.lost


class TestController(unittest.TestCase):

    def setUp(self):
        self.memory = reservation_controller.Memory()

    def step(self, view, to_start_s):
        """The intents, and in how many seconds to step again."""
        now_us = round((START_S - to_start_s) * SECOND)
        found = reservation_controller.step(view, self.memory, now_us)
        # Equal input gives an equal step.
        self.assertEqual(found, reservation_controller.step(view, self.memory,
                                                            now_us))
        self.memory = found.memory
        return found.intents, None if found.wake_at_us is None else (
            (found.wake_at_us - now_us) / SECOND)

    def test_far_from_its_start(self):
        view = View(reservation(('h1', reservation_model.ASSIGNED)),
                    {'h1': [normal('n')]})
        self.assertEqual(((), 5000 - 910), self.step(view, 5000))
        self.assertEqual(((), 60), self.step(dataclasses.replace(
            view, reservation=dataclasses.replace(
                view.reservation, quantity=2)), 5000))

    def test_each_server_at_its_time(self):
        view = View(reservation(('h1', reservation_model.EMPTYING)),
                    {'h1': [spot('p'), normal('n')]})
        self.assertEqual(((), 5), self.step(view, 905))
        self.assertEqual(
            ((reservation_controller.Migrate('h1', 'n'),), 5),
            self.step(view, 900))
        view.there = {'h1': [spot('p'), spot('q', notice_s=60),
                             spot('r', busy=True)]}
        self.assertEqual(((), 720), self.step(view, 900))
        self.assertEqual(((reservation_controller.Evict('h1', ('p',)),
                           reservation_controller.Evict('h1', ('q',))), 5),
                         self.step(view, 180))
        view.ending = ('p', 'q')
        self.assertEqual(((), 5), self.step(view, 175))

    def test_a_reservation_starts_when_its_hosts_are_empty(self):
        view = View(reservation(('h1', reservation_model.EMPTYING),
                                ('h2', reservation_model.READY)),
                    {'h2': [spot('own', named=('r1',))]})
        self.assertEqual(((
            reservation_controller.SetHost('h1', reservation_model.READY),),
                100),
                         self.step(view, 100))
        self.assertEqual(((reservation_controller.SetHost(
            'h1', reservation_model.READY),
                           reservation_controller.StartReservation()), None),
                         self.step(view, 0))
        for free in (False, None):
            view.free = free
            self.assertEqual(((reservation_controller.SetHost(
                'h2', reservation_model.EMPTYING),), 1),
                             self.step(view, 0))

    def test_a_host_of_which_nothing_is_known_is_waited_for(self):
        view = View(reservation(('h1', reservation_model.EMPTYING)),
                    {'h1': [spot('p')]})
        for host in (observed_hosts.Host('h1', dark=True),
                     observed_hosts.Host('h1', state='down'),
                     observed_hosts.Host('h1', dark=True,
                                         asleep=host_classification.OffHost(
                                             'late', 0))):
            view.hosts = {'h1': host}
            for to_start_s, wake_s in ((100, 5), (0, 1), (-5000, 1)):
                self.assertEqual(((), wake_s), self.step(view, to_start_s))
        # From then on it has all its time.
        view.hosts = {}
        view.there = {'h1': [spot('p', busy=True)]}
        self.assertEqual(((), 1), self.step(view, -5100))
        (lost,), _ = self.step(view, -5180)
        self.assertTrue(lost.or_lose)

    def test_patience(self):
        """A host has the time that it takes to empty it, also afterwards."""
        view = View(reservation(('h1', reservation_model.EMPTYING)),
                    {'h1': [spot('p', busy=True)]})
        self.step(view, 100)
        self.assertEqual(((), 1), self.step(view, -79))
        (lost,), wake_s = self.step(view, -80)
        self.assertEqual(
            ('h1', (), reservation_controller.Loss.OCCUPIED, True), (
            lost.host, lost.candidates, lost.loss, lost.or_lose))
        self.assertEqual(60, wake_s)
        # It has another try, if it is had again.
        self.assertEqual(((), 1), self.step(view, -81))

    def test_a_clock_that_was_turned_back(self):
        view = View(reservation(('h1', reservation_model.EMPTYING)),
                    {'h1': [spot('p', busy=True)]})
        self.step(view, -5000)
        self.assertEqual(((), 1), self.step(view, -100))
        self.assertEqual(((), 1), self.step(view, -279))
        (lost,), _ = self.step(view, -280)
        self.assertTrue(lost.or_lose)

    def test_another_host_in_time(self):
        """It is searched every half a minute, even if clocks jump."""
        view = View(reservation(('h1', reservation_model.EMPTYING)),
                    {'h1': [spot('p', stays_s=5000.0)]})
        self.assertEqual(((), 5), self.step(view, 500))
        view.others = ('h2', 'h3')
        self.assertEqual(((), 5), self.step(view, 475))
        for to_start_s in (470, 600):
            (swap,), wake_s = self.step(view, to_start_s)
            self.assertEqual(('h1', ('h2', 'h3'), False, ('p',), 0), (
                swap.host, swap.candidates, swap.or_lose, swap.blocking,
                wake_s))

    def test_a_move_is_asked_for_again(self):
        """Half a minute after it came to nothing, or the clock was set."""
        view = View(reservation(('h1', reservation_model.EMPTYING)))
        for ago_s, expected in ((29, ()), (
            30, (reservation_controller.Migrate('h1', 'n'),)),
                                (-1,
                                 (reservation_controller.Migrate('h1', 'n'),
                                     ))):
            view.there = {'h1': [normal(
                'n', refused=True,
                asked_us=(START_S - 100 - ago_s) * SECOND)]}
            self.assertEqual((expected, 5), self.step(view, 100))

    def test_hosts_that_are_off(self):
        view = View(reservation(('h1', reservation_model.EMPTYING)),
                    others=('h2',))
        view.hosts = {'h1': observed_hosts.Host(
            'h1', asleep=host_classification.OffHost('', 300))}
        self.assertEqual(((), 5), self.step(view, 200))
        self.assertEqual(((), 1), self.step(view, 0))
        (lost,), _ = self.step(view, -300)
        self.assertEqual((reservation_controller.Loss.ASLEEP, ('h2',), True), (
            lost.loss, lost.candidates, lost.or_lose))
        view.hosts = {'h1': observed_hosts.Host(
            'h1', asleep=host_classification.OffHost('paused', 300))}
        self.assertEqual(((), 5), self.step(view, 310))
        (swap,), _ = self.step(view, 300)
        self.assertEqual((reservation_controller.Loss.ASLEEP, False),
                         (swap.loss, swap.or_lose))

    def test_hosts_that_are_down_or_missing(self):
        view = View(reservation(('h1', reservation_model.ASSIGNED),
                                ('h2', reservation_model.ASSIGNED),
                                ('h3', reservation_model.LOST)),
                    others=('h4',), down=('h1', 'h2', 'h3'))
        self.assertEqual((tuple(
            reservation_controller.ReplaceHost(
                name, ('h4',), reservation_controller.Loss.DOWN, True)
            for name in ('h1', 'h2')), 0), self.step(view, 5000))
        view.down = ()
        self.assertEqual(((reservation_controller.ReplaceHost(None, ('h4',)),),
                          0),
                         self.step(view, 5000))
        view.others = ()
        self.assertEqual(((), 60), self.step(view, 5000))

    def test_a_lost_host_on_which_its_servers_run_comes_back(self):
        own = drain_rules.Server('own', ('r1',))
        view = View(reservation(('h1', reservation_model.LOST),
                                ('h2', reservation_model.READY),
                                quantity=1, ready=True),
                    {'h1': [own]}, lost=('h1',))
        self.assertEqual(((host_replacement.ReturnHost('h1', 'h2'),), 0),
                         self.step(view, -100))
        view.reservation = dataclasses.replace(
            view.reservation, ready_at=None)
        self.assertNotIn(host_replacement.ReturnHost('h1', 'h2'),
                         self.step(view, -100)[0])

    def test_other_servers_are_removed(self):
        view = View(reservation(('h1', reservation_model.READY), ready=True), {
            'h1': [drain_rules.Server('own', ('r1',)), spot('p'),
                   normal('n')]})
        reported = reservation_controller.SetHost(
            'h1', reservation_model.READY,
            'other servers are on it: n, p')
        turned_away = ((reported, reservation_controller.Migrate('h1', 'n'),
                        reservation_controller.Evict('h1', ('p',))), 5)
        self.assertEqual(turned_away, self.step(view, -100))
        with self.subTest('what was reported is not reported again'):
            host, = view.reservation.hosts
            view.reservation = dataclasses.replace(
                view.reservation, hosts=(dataclasses.replace(
                    host, reason=reported.reason),))
            turned_away = turned_away[0][1:], 5
            self.assertEqual(turned_away, self.step(view, -100))
        with self.subTest('nor if they are listed in another order'):
            view.there = {'h1': view.there['h1'][::-1]}
            self.assertFalse([
                each for each in self.step(view, -100)[0]
                if isinstance(each, reservation_controller.SetHost)])
            view.there = {'h1': view.there['h1'][::-1]}
        view.hosts = {'h1': observed_hosts.Host('h1',
                                                status='disabled')}
        self.assertEqual(turned_away, self.step(view, -100))
        view.hosts = {'h1': observed_hosts.Host('h1', dark=True)}
        self.assertEqual(((), None), self.step(view, -100))
        with self.subTest('they are gone'):
            view.hosts, view.there = {}, {}
            self.assertEqual(((reservation_controller.SetHost(
                'h1', reservation_model.READY),), None),
                self.step(view, -100))

    def test_an_unlisted_host(self):
        view = View(reservation(('h1', reservation_model.EMPTYING)))
        view.host = lambda name: None
        self.assertEqual(((), 1), self.step(view, -100))

    def test_when_it_is_time(self):
        found = reservation(('h1', reservation_model.ASSIGNED),
                            ('h2', reservation_model.LOST), quantity=1)
        for to_start_s, quantity, down, expected in (
                (911, 1, (), False), (910, 1, (), True), (-5, 1, (), True),
                (5000, 1, ('h1',), True), (5000, 1, ('h2',), False),
                (5000, 2, (), True)):
            with self.subTest(to_start_s=to_start_s, down=down):
                self.assertIs(expected, reservation_controller.is_due(
                    dataclasses.replace(found, quantity=quantity), LEADS_S,
                    down, (START_S - to_start_s) * SECOND))
