# SPDX-License-Identifier: Apache-2.0
"""Batches of many kinds, and of the wrong kind."""

import unittest
from unittest import mock

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from tests.unit.core.batch import base


class TestConstraints(unittest.TestCase):
    """Tests of constraints, in each mode."""

    def place(self, requests, hosts, **options):
        found = [base.place(requests, hosts, mode=mode, **options)
                 for mode in batch_model.MODES]
        for other in found[1:]:
            self.assertEqual(found[0].unplaced, other.unplaced)
        return found[0]

    def test_allowed_hosts_and_traits(self):
        hosts = [base.host('a', 9), base.host('b', 9, traits=['T1', 'T2']),
                 base.host('c', 9, traits=['T1'])]
        found = self.place([
            base.request(0, 1, hosts=['a']),
            base.request(1, 1, traits=['T2']),
            base.request(2, 1, traits=['T1'], forbidden=['T2']),
            base.request(3, 1, hosts=['b', 'gone'])], hosts)
        self.assertEqual({'r0': 'a', 'r1': 'b', 'r2': 'c', 'r3': 'b'},
                         base.where(found))
        found = self.place([
            base.request(0, 1, traits=['T3']),
            base.request(1, 1, hosts=['a'], traits=['T1']),
            base.request(2, 1, hosts=['gone']),
            base.request(3, 1, hosts=['b'], forbidden=['T2'])], hosts)
        self.assertEqual(('r0', 'r1', 'r2', 'r3'), found.unplaced)

    def test_anti_affinity_groups(self):
        """A host takes one server of a group, of any class."""
        requests = [base.request(0, 1, apart=['g']),
                    base.request(1, 2, apart=['g']),
                    base.request(2, 1, apart=['g', 'other'])]
        found = self.place(requests, [base.host('a', 9), base.host('b', 9)])
        self.assertEqual(2, len(set(base.where(found).values())))
        self.assertEqual(('r2',), found.unplaced)

    def test_a_few_of_a_group(self):
        requests = [
            batch_model.Request(
                f'r{number}', number, {'VCPU': 1},
                apart=(batch_model.AntiAffinity('g', 2 + number % 2),))
            for number in range(5)]
        for mode in batch_model.MODES:
            found = base.place(
                requests, [base.host('a', 9), base.host('b', 9)], mode=mode)
            hosts = list(base.where(found).values())
            self.assertEqual([2, 2], [hosts.count('a'), hosts.count('b')])
            self.assertEqual(('r4',), found.unplaced)

    def test_together_and_apart(self):
        """Pairs, each on one host, and no two pairs on the same."""
        requests = [base.request(number, 1, together=f'g{number // 2}',
                                 apart=[f'side{number % 2}'])
                    for number in range(4)]
        found = base.where(self.place(
            requests, [base.host('a', 9), base.host('b', 9)]))
        self.assertEqual(found['r0'], found['r1'])
        self.assertEqual(found['r2'], found['r3'])
        self.assertNotEqual(found['r0'], found['r2'])

    def test_several_servers_of_an_affinity_group(self):
        requests = [base.request(0, 1, together='g', count=3, least=2),
                    base.request(1, 2, together='g')]
        found = self.place(requests, [base.host('a', 4), base.host('b', 5)])
        self.assertEqual({'r0': {'b': 3}, 'r1': {'b': 1}}, found.placed)

    def test_contradictions(self):
        for more in ({'apart': ['x']}, {'forbidden': ['T']},
                     {'hosts': ['b']}):
            requests = [
                base.request(0, 1, together='g', traits=['T'], apart=['x'],
                             hosts=['a']),
                base.request(1, 1, together='g', **more)]
            found = self.place(requests, [
                base.host(name, 9, traits=['T']) for name in 'ab'])
            self.assertEqual(('r0', 'r1'), found.unplaced)

    def test_a_trait_that_is_forbidden_as_well(self):
        found = self.place([base.request(0, 1, traits=['T'],
                                         forbidden=['T'])],
                           [base.host('a', 9)])
        self.assertEqual(('r0',), found.unplaced)

    def test_space_in_only_one_class(self):
        found = self.place([base.request(0, 4, 4)],
                           [base.host('a', 1, 8), base.host('b', 8, 1)])
        self.assertEqual(('r0',), found.unplaced)


class TestCounts(unittest.TestCase):
    """Requests for several servers."""

    def test_a_count_is_placed_as_a_whole(self):
        hosts = [base.host('a', 2), base.host('b', 1)]
        for mode in batch_model.MODES:
            found = base.place([base.request(0, 1, count=3, least=3)], hosts,
                               mode=mode)
            self.assertEqual({'r0': {'a': 2, 'b': 1}}, found.placed)
            found = base.place([base.request(0, 1, count=4, least=4),
                                base.request(1, 1)], hosts, mode=mode)
            self.assertEqual(('r0',), found.unplaced)

    def test_as_many_servers_as_fit_above_the_least(self):
        hosts = [base.host('a', 2), base.host('b', 1)]
        found = base.place(
            [base.request(0, 1, count=9, least=2), base.request(1, 1)], hosts)
        self.assertEqual(3, sum(
            sum(each.values()) for each in found.placed.values()))
        self.assertEqual(found.placed['r0'].keys(), {'a', 'b'})

    def test_an_earlier_large_request_comes_first(self):
        """The large request is placed although three small ones fit."""
        requests = [base.request(0, 6), *(
            base.request(number, 2) for number in range(1, 4))]
        hosts = [base.host('a', 7)]
        found = base.place(requests, hosts)
        self.assertEqual(['r0'], list(found.placed))
        self.assertTrue(found.parts[0].optimal)

    def test_an_affinity_group_is_placed_as_a_whole(self):
        """It is omitted if it does not fit, even if others fit."""
        group = [base.request(number, 3, together='g')
                 for number in range(2)]
        requests = [*group, base.request(2, 4)]
        found = base.place(requests, [base.host('a', 6)])
        self.assertEqual({'r0': 'a', 'r1': 'a'}, base.where(found))
        found = base.place(requests, [base.host('a', 5)])
        self.assertEqual({'r2': 'a'}, base.where(found))
        self.assertTrue(found.parts[0].optimal)

    def test_earlier_requests_get_space_by_rearranging(self):
        """Placed one by one, small requests use the hosts of large ones."""
        requests = [base.request(0, 2), base.request(1, 2),
                    base.request(2, 4), base.request(3, 1)]
        hosts = [base.host('a', 4), base.host('b', 4)]
        found = base.place(requests, hosts, mode=batch_model.GREEDY,
                           score=batch_model.WEIGHTS)
        self.assertEqual({'r0': 'a', 'r1': 'a', 'r2': 'b'},
                         base.where(found))
        spread = [base.host('a', 4, weight=1), base.host('b', 4)]
        # The first score is larger where it was not chosen last.
        greedy = base.place(requests, spread, mode=batch_model.GREEDY)
        self.assertEqual(('r2',), greedy.unplaced)
        found = base.place(requests, spread)
        self.assertEqual(('r3',), found.unplaced)


class TestBadInput(unittest.TestCase):

    def test_options(self):
        for name, value, text in (
                ('mode', 'best', "'best'; it must be one of exact, greedy"),
                ('score', 'x', 'one of dp, ml, weights'),
                ('most_at_once', 9000, 'from 1 to 8192'),
                ('time_limit_s', 0, 'time_limit_s is 0'),
                ('gap', -1, 'gap is -1')):
            with self.assertRaisesRegex(ValueError, text):
                batch_model.Options(**{name: value})

    def test_counts(self):
        for count, least in ((0, 0), (1, 2), (2, 0)):
            with self.assertRaisesRegex(ValueError, f'least is {least}'):
                base.request(0, 1, count=count, least=least)
        with self.assertRaisesRegex(ValueError, 'group g is 0'):
            batch_model.AntiAffinity('g', 0)

    def test_duplicates(self):
        with self.assertRaisesRegex(ValueError, 'requests are the same'):
            base.place([base.request(0, 1)] * 2, [])
        with self.assertRaisesRegex(ValueError, 'host a is a duplicate'):
            base.place([], [base.host('a', 1)] * 2)

    def test_amounts(self):
        with self.assertRaisesRegex(ValueError, 'r0 asks for a negative'):
            base.place([base.request(0, -1)], [])
        with self.assertRaisesRegex(
                ValueError, f'VCPU: {2**70 + 1} is asked for'):
            base.place([base.request(0, 2**70 + 1), base.request(1, 1)],
                       [base.host('a', 2**80)])
        with self.assertRaisesRegex(ValueError, 'weight of a is 1099511627'):
            base.place([base.request(0, 1)],
                       [base.host('a', 1, weight=2**40 + 1)],
                       score=batch_model.WEIGHTS)

    def test_large_amounts_with_something_in_common(self):
        """They are counted in units of the common divisor."""
        requests = [base.request(0, 2**70), base.request(1, 2**71),
                    base.request(2, 2**70)]
        hosts = [base.host('a', 2**71 + 5), base.host('b', 2**71 - 1)]
        for mode in batch_model.MODES:
            found = base.place(requests, hosts, mode=mode,
                               score=batch_model.WEIGHTS)
            self.assertLessEqual(2, len(found.placed), mode)
        found = base.place(requests, hosts)
        self.assertEqual({'r0': 'b', 'r1': 'a'}, base.where(found))

    def test_amounts_that_a_float_does_not_hold(self):
        """An exact fit fits, one more does not."""
        large = 2**53 + 1
        requests = [base.request(0, large), base.request(1, large + 2)]
        for free, placed in ((2 * large + 2, 2), (2 * large + 1, 1)):
            for mode in batch_model.MODES:
                found = base.place(requests, [base.host('a', free)],
                                   mode=mode)
                self.assertEqual(placed, len(found.placed), (free, mode))

    def test_no_library(self):
        for library, options, extra in (
                ('numpy', {}, 'batch'), ('scipy.optimize', {}, 'batch')):
            with (mock.patch.dict('sys.modules', {library: None}),
                  self.assertRaisesRegex(
                      solver_choice.NotInstalled,
                      rf'needs {library}.*nova-preempt\[{extra}\]')):
                solver_choice.make(batch_model.Options(**options))

    def test_greedy_needs_no_scipy(self):
        with mock.patch.dict('sys.modules', {'scipy.optimize': None}):
            solver_choice.make(batch_model.Options(mode=batch_model.GREEDY))


class TestBadDays(unittest.TestCase):

    def test_no_requests(self):
        for mode in batch_model.MODES:
            self.assertEqual(
                batch_model.BatchResult({}, (), 0),
                base.place([], [], mode=mode))
            found = base.place([], [base.host('a', 1)], mode=mode)
            self.assertEqual(({}, ()), (found.placed, found.parts))
            found = base.place([base.request(0, 1)], [], mode=mode)
            self.assertEqual(('r0',), found.unplaced)

    def test_one_request(self):
        for mode in batch_model.MODES:
            found = base.place([base.request(0, 1)],
                               [base.host('a', 1), base.host('b', 2)],
                               mode=mode)
            self.assertEqual({'r0': 'b'}, base.where(found))
        self.assertTrue(base.place(
            [base.request(0, 1)], [base.host('a', 1)]).parts[0].optimal)

    def test_asking_for_nothing(self):
        for mode in batch_model.MODES:
            found = base.place([base.request(0, 0), base.request(1)],
                               [base.host('a', -1)], mode=mode)
            self.assertEqual({'r0': 'a', 'r1': 'a'}, base.where(found), mode)

    def test_no_request_fits(self):
        requests = [base.request(number, 5) for number in range(50)]
        hosts = [base.host(f'h{number}', 4) for number in range(20)]
        for mode in batch_model.MODES:
            found = base.place(requests, hosts, mode=mode)
            self.assertEqual(50, len(found.unplaced))

    def test_no_time_is_left(self):
        """The greedy result is always returned."""
        times = iter(range(100))
        requests = [base.request(number, 2 + number % 3, 1 + number % 2)
                    for number in range(12)]
        hosts = [base.host(f'h{number}', 7, 4) for number in range(4)]
        greedy = base.place(requests, hosts, mode=batch_model.GREEDY)
        found = base.place(requests, hosts, lambda: next(times),
                           time_limit_s=0.5)
        self.assertFalse(found.parts[0].optimal)
        self.assertEqual(batch_model.GREEDY, found.parts[0].method)
        self.assertEqual(greedy.placed, found.placed)

    def test_parts(self):
        """Capacity used by one part is not available to the next."""
        requests = [base.request(number, 1, apart=['g'] if number % 2 else [])
                    for number in range(10)]
        hosts = [base.host('a', 4), base.host('b', 4)]
        for mode in batch_model.MODES:
            found = base.place(requests, hosts, mode=mode, most_at_once=3)
            self.assertEqual([3, 3, 3, 1],
                             [part.servers for part in found.parts])
            self.assertTrue(all(amount <= 4 for amount in base.used(
                requests, found).values()))
            apart = [host for uuid, host in base.where(found).items()
                     if int(uuid[1:]) % 2]
            self.assertEqual(['a', 'b'], sorted(apart), mode)
            self.assertEqual(3, len(found.unplaced))

    def test_a_request_larger_than_a_part(self):
        found = base.place([base.request(0, 1, count=20, least=7)],
                           [base.host('a', 9)], most_at_once=5)
        self.assertEqual({'r0': {'a': 9}}, found.placed)
