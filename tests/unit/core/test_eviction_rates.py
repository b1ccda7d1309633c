# SPDX-License-Identifier: Apache-2.0
"""Rates of evictions, and what a project sees of them."""

import datetime
import unittest
import weakref

from nova_preempt.core import eviction_rates
from nova_preempt.core.eviction_rates import Sample

NOW = datetime.datetime(2026, 11, 20, 12)
HOUR = datetime.timedelta(hours=1)


def sample(project='p', servers=1, lives=(), hours_ago=1, flavor='spot',
           zone='az1'):
    return Sample(NOW - hours_ago * HOUR, flavor, zone, project, servers,
                  servers * 3600, list(lives))


class TestSamples(unittest.TestCase):

    def test_by_flavor_zone_and_project(self):
        found = eviction_rates.sample(
            NOW, NOW - HOUR,
            [('spot', 'n1', 'p'), ('spot', 'n2', 'p'), ('spot', 'n3', 'p'),
             ('big', 'n1', 'q')],
            [('spot', 'n3', 'p', 70), ('old', 'n1', 'q', None)],
            {'n1': 'az1', 'n2': 'az1'})
        self.assertEqual([
            Sample(NOW, 'big', 'az1', 'q', 1, 3600, []),
            Sample(NOW, 'old', 'az1', 'q', 0, 0, [0]),
            Sample(NOW, 'spot', '', 'p', 1, 3600, [70]),
            Sample(NOW, 'spot', 'az1', 'p', 2, 7200, [])], found)

    def test_a_long_pause_of_the_engine(self):
        """Nobody knows what ran meanwhile."""
        found, = eviction_rates.sample(
            NOW, NOW - 9 * HOUR, [('spot', 'n1', 'p')], [], {})
        self.assertEqual(7200, found.server_s)


class TestRates(unittest.TestCase):

    def test_exact_ones(self):
        day, month = eviction_rates.rates(
            [sample(servers=9), sample('q', 1, [60, 7200, 120]),
             sample(hours_ago=24), sample(servers=10, hours_ago=700),
             sample(servers=50, hours_ago=720)], NOW)
        self.assertEqual(
            (24, 3, 10.0, 0.3, '>20%', 120, '<1h'),
            (day.hours, day.evictions, day.server_hours, day.share,
             day.share_range, day.life_s, day.life_range))
        self.assertEqual((720, 3, 21.0, '10-15%'), (
            month.hours, month.evictions, month.server_hours,
            month.share_range))

    def test_groups(self):
        found = eviction_rates.rates(
            [sample(), sample(zone='az2'), sample(flavor='a')], NOW)
        self.assertEqual(
            [('a', 'az1', 24), ('a', 'az1', 720), ('spot', 'az1', 24),
             ('spot', 'az1', 720), ('spot', 'az2', 24), ('spot', 'az2', 720)],
            [(rate.flavor, rate.zone, rate.hours) for rate in found])

    def test_no_sample_is_kept(self):
        """There may be more than fit into memory."""
        refs, alive = [], []

        def samples():
            for _ in range(5):
                item = sample()
                refs.append(weakref.ref(item))
                yield item
                del item
                alive.append(sum(ref() is not None for ref in refs))

        self.assertEqual(5.0, eviction_rates.rates(samples(), NOW)[0]
                         .server_hours)
        self.assertLessEqual(max(alive), 1)

    def test_none(self):
        rate = eviction_rates.rates([sample()], NOW)[0]
        self.assertEqual((0.0, '<5%', None, ''), (
            rate.share, rate.share_range, rate.life_s, rate.life_range))
        rate = eviction_rates.rates([sample(servers=0)], NOW)[0]
        self.assertEqual((None, ''), (rate.share, rate.share_range))
        # All that there were, shortly after the first sample.
        rate = eviction_rates.rates([sample(servers=0, lives=[5])], NOW)[0]
        self.assertEqual(1.0, rate.share)

    def test_ranges(self):
        for share, text in ((0, '<5%'), (0.049, '<5%'), (0.05, '5-10%'),
                            (0.15, '15-20%'), (0.2, '>20%'), (1, '>20%')):
            rate = eviction_rates.Rate('f', 'z', 24, 0, 0, share, 86400)
            self.assertEqual((text, '1-7d'), (rate.share_range,
                                              rate.life_range))


class TestPrivacy(unittest.TestCase):
    """A project learns nothing of another one."""

    def seen(self, *samples, viewer='me'):
        return bool(eviction_rates.rates(samples, NOW, viewer))

    def test_several_projects_with_servers(self):
        three = [sample(name, 4) for name in 'abc']
        self.assertTrue(self.seen(*three))
        self.assertFalse(self.seen(*three[:2]))
        self.assertFalse(self.seen(*(sample(name, 3) for name in 'abc')))
        # Its own do not count: it could subtract them.
        self.assertFalse(self.seen(*three[:2], sample('me', 90)))
        self.assertFalse(self.seen(*three, viewer='a'))
        self.assertTrue(self.seen(*three, sample('me', 90)))

    def test_none_of_them_has_most(self):
        self.assertFalse(self.seen(sample('a', 11), sample('b', 5),
                                   sample('c', 5)))
        self.assertTrue(self.seen(sample('a', 10), sample('b', 5),
                                  sample('c', 5)))

    def test_more_samples_are_not_more_servers(self):
        self.assertFalse(self.seen(*(
            sample(name, 1, hours_ago=hour) for hour in range(1, 20)
            for name in 'abc')))

    def test_each_period_counts_for_itself(self):
        found = eviction_rates.rates(
            [sample(name, 4, hours_ago=30) for name in 'abc']
            + [sample('a', 4)], NOW, 'me')
        self.assertEqual([720], [rate.hours for rate in found])
