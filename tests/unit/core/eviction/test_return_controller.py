# SPDX-License-Identifier: Apache-2.0

"""Returns of shelved victims: order and times."""

import collections
import datetime
import unittest

from nova_preempt.core import controller_step
from nova_preempt.core.eviction import return_controller
from nova_preempt.core.eviction.return_controller import ShelvedState
from nova_preempt.core.eviction.return_controller import ShelvedVictim
from nova_preempt.core.model import SECOND

SIZE = {'VCPU': 1}


def shelved(*uuids, **resources):
    return [ShelvedVictim(uuid, resources or SIZE)
            for uuid in uuids]


def chosen(*args):
    return [each.uuid for each in return_controller.choose(*args)]


class TestWhoReturns(unittest.TestCase):

    def test_servers_shelved_by_an_eviction_return(self):
        for asked in ('shelve', 'unrescue', 'confirm_resize', 'live_migrate'):
            self.assertTrue(return_controller.is_shelved_by(asked))

    def test_servers_shelved_by_their_owner_do_not_return(self):
        """They were shelved before the eviction, or during the notice."""
        for asked in ('', 'shelve_offload'):
            self.assertFalse(return_controller.is_shelved_by(asked))


class TestChoose(unittest.TestCase):

    def test_servers_with_space_are_chosen(self):
        self.assertEqual(['a', 'b', 'c'], chosen(
            shelved(*'abcd'), [], {'h1': {'VCPU': 1}, 'h2': {'VCPU': 2}}, 9))

    def test_at_most_at_once_servers_are_chosen(self):
        self.assertEqual(['a'], chosen(
            shelved(*'abcd'), shelved('x'), {'h1': {'VCPU': 9}}, 2))

    def test_pending_returns_use_their_space_first(self):
        self.assertEqual(['a'], chosen(
            shelved('a', 'b'), shelved('x'), {'h1': {'VCPU': 2}}, 9))

    def test_a_server_without_space_lets_others_pass(self):
        self.assertEqual(['small'], chosen(
            [*shelved('big', VCPU=4), *shelved('small')], [],
            {'h1': {'VCPU': 3}}, 9))

    def test_space_must_be_on_one_host(self):
        self.assertEqual([], chosen(
            shelved('a', VCPU=2), [],
            {'h1': {'VCPU': 1}, 'h2': {'VCPU': 1, 'PCPU': 8}}, 9))

    def test_the_argument_is_not_changed(self):
        room = {'h1': {'VCPU': 2}}
        chosen(shelved('a'), [], room, 9)
        self.assertEqual({'h1': {'VCPU': 2}}, room)


class Cloud:
    """Input of the controller in a test.

    :ivar looked: the uuids of those that had a look
    """

    def __init__(self, *servers, room=9, at_once=9, timeout_s=1000, held=()):
        self.options = return_controller.Options(at_once, timeout_s)
        self.servers = servers
        self.sights = {}
        self.looked = []
        self.not_seen = ()
        self._room, self._held = room, held

    def asked(self):
        return [each for each in self.servers if each.tries]

    def waiting(self):
        return [[each for each in self.servers if each.period_s is None]]

    def of_class(self):
        return [each for each in self.servers if each.period_s is not None]

    def unseen(self):
        return self.not_seen

    def sight(self, uuid):
        self.looked.append(uuid)
        return self.sights.get(uuid, ShelvedState.SHELVED)

    def holds(self, uuid):
        return uuid in self._held

    def room(self, server):
        return {'h': {'VCPU': self._room}} if self._room else {}

    def choose(self, waiting, most, memory, now_us):
        return controller_step.Step(
            tuple(each.uuid for each in waiting)[:max(0, most)], 'passed')


def server(uuid, tries=0, next_try_s=0, ended_s=0, **values):
    return ShelvedVictim(uuid, SIZE, ended_s * SECOND, tries,
                                           next_try_s * SECOND, **values)


def step(cloud, now_s=10):
    """{kind of intent: uuids} of a step."""
    found = collections.defaultdict(list)
    for intent in return_controller.step(cloud, None, now_s * SECOND).intents:
        found[type(intent).__name__].append(intent.uuid)
    return dict(found)


class TestStep(unittest.TestCase):

    def test_a_server_is_unshelved_when_its_pause_is_over(self):
        for tries, next_try_s, now_s, expected in (
                (0, 0, 10, 'Unshelve'),
                # Nobody has asked it, whatever is written of a next time.
                (0, 60, 10, 'Unshelve'),
                (1, 60, 10, None),
                (1, 10, 10, 'Unshelve'),
                (1, 94, 99, 'Unshelve'),
                (1, 95, 100, 'GiveUp'),
                (0, 0, 100, 'GiveUp'),
                # What was asked may still come.
                (1, 150, 100, None)):
            with self.subTest(tries=tries, next_try_s=next_try_s,
                              now_s=now_s):
                found = step(Cloud(server('a', tries, next_try_s),
                                   timeout_s=100), now_s)
                self.assertEqual({expected: ['a']} if expected else {}, found)

    def test_the_clock_was_set_back(self):
        """A third try is followed by a pause of 240 s."""
        self.assertEqual([{}, {}, {'Unshelve': ['a']}], [
            step(Cloud(server('a', 3, left_s)), 0)
            for left_s in (240, 300, 301)])

    def test_pauses_grow_with_failures(self):
        for tries, period_s, pause_s in ((0, None, 60), (2, None, 240),
                                         (5, 300, 300)):
            (intent,) = return_controller.step(Cloud(server(
                'a', tries, period_s=period_s)), None, 10 * SECOND).intents
            self.assertEqual(
                return_controller.Unshelve('a', (10 + pause_s) * SECOND),
                intent)

    def test_servers_asked_lately_or_long_unseen_are_read(self):
        cloud = Cloud(server('a', 3, 180), server('b', 3, 179),
                      server('c', 3, 179), room=0)
        cloud.not_seen = ['c']
        self.assertEqual({}, step(cloud, 0))
        self.assertEqual(['a', 'c'], cloud.looked)

    def test_pending_returns_count_against_the_limit(self):
        cloud = Cloud(server('a', 1, 60), server('b'), server('c'), at_once=2)
        cloud.sights['a'] = ShelvedState.COMING
        self.assertEqual({'Unshelve': ['b']}, step(cloud))
        cloud.sights['a'] = ShelvedState.SHELVED
        self.assertEqual({'Unshelve': ['b', 'c']}, step(cloud))

    def test_pending_returns_use_space_they_do_not_hold_yet(self):
        for held, expected in (((), {}), ('a', {'Unshelve': ['b']})):
            cloud = Cloud(server('a', 1, 60), server('b'), room=1, held=held)
            cloud.sights['a'] = ShelvedState.COMING
            self.assertEqual(expected, step(cloud))

    def test_servers_that_are_gone_or_back_are_closed(self):
        cloud = Cloud(server('a'), server('b', 1, 60), server('c'), room=0)
        cloud.not_seen = ['a', 'c']
        cloud.sights.update(a=ShelvedState.BACK,
                            b=ShelvedState.GONE)
        self.assertEqual({'Close': ['a', 'b']}, step(cloud))

    def test_servers_of_a_class_come_first_and_are_never_given_up(self):
        cloud = Cloud(server('a'), server('g', period_s=60), at_once=2)
        self.assertEqual({'Unshelve': ['g', 'a']}, step(cloud))
        self.assertEqual({'GiveUp': ['a'], 'Unshelve': ['g']},
                         step(cloud, 5000))
        self.assertEqual('passed',
                         return_controller.step(cloud, None, 0).memory)

    def test_equal_input_gives_an_equal_step(self):
        cloud = Cloud(server('b'), server('a'), server('c', 1, 60))
        self.assertEqual(return_controller.step(cloud, None, 0),
                         return_controller.step(cloud, None, 0))

    def test_after_missed_steps_and_with_a_clock_that_was_set_back(self):
        cloud = Cloud(server('a', 1, 60, ended_s=500), timeout_s=10**6)
        self.assertEqual({'Unshelve': ['a']}, step(cloud, 10**5))
        self.assertEqual({'Unshelve': ['a']}, step(cloud, -10**5))


class TestSight(unittest.TestCase):

    def test_pauses(self):
        self.assertEqual([60, 120, 240, 3600, 3600], [
            return_controller.pause_s(60, tries)
            for tries in (0, 1, 2, 6, 10_000)])

    def test_classify_states(self):
        for status, task_state, expected in (
                (None, None, ShelvedState.GONE),
                ('SOFT_DELETED', None, ShelvedState.GONE),
                ('DELETED', None, ShelvedState.GONE),
                ('SHELVED', None, ShelvedState.SHELVED),
                ('SHELVED', 'unshelving', ShelvedState.COMING),
                ('SHELVED', 'powering-on', ShelvedState.BUSY),
                ('SHELVED_OFFLOADED', None, ShelvedState.SHELVED),
                ('SHELVED_OFFLOADED', 'unshelving',
                 ShelvedState.COMING),
                ('SHELVED_OFFLOADED', 'spawning',
                 ShelvedState.COMING),
                ('SHELVED_OFFLOADED', 'deleting',
                 ShelvedState.BUSY),
                ('ACTIVE', 'rebooting', ShelvedState.BUSY),
                ('ACTIVE', None, ShelvedState.BACK),
                ('ERROR', None, ShelvedState.BACK)):
            with self.subTest(status=status, task_state=task_state):
                self.assertIs(expected,
                              return_controller.classify(status, task_state,
                                                         None, 0))

    def test_a_server_still_on_its_host_is_busy(self):
        for held_s, expected in ((0, ShelvedState.BUSY),
                                 (return_controller.LET_GO_S - 1,
                                  ShelvedState.BUSY),
                                 (return_controller.LET_GO_S,
                                  ShelvedState.SHELVED)):
            self.assertIs(expected, return_controller.classify(
                'SHELVED_OFFLOADED', None, 'host', held_s))
        self.assertIs(ShelvedState.SHELVED, return_controller.classify(
            'SHELVED', None, 'host', 0))

    def test_a_server_that_has_run_since_was_shelved_by_its_owner(self):
        ended = datetime.datetime(2026, 1, 1, 12)
        before = ended - datetime.timedelta(hours=1)
        later = ended + datetime.timedelta(seconds=9)
        for launched, known, expected in (
                (before, before, False), (later, before, True),
                (None, before, False), (later, None, True),
                # The clock of its compute is ahead of ours.
                (later, later, False)):
            self.assertIs(expected, return_controller.has_run_since(
                launched, known, ended))
        self.assertIs(ShelvedState.BACK, return_controller.classify(
            'SHELVED_OFFLOADED', None, None, 0, has_run=True))
        self.assertIs(ShelvedState.COMING, return_controller.classify(
            'SHELVED_OFFLOADED', 'spawning', None, 0, has_run=True))
