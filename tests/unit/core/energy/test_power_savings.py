# SPDX-License-Identifier: Apache-2.0
"""Tests of the savings and costs of powering hosts off."""

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.energy import power_savings
from tests.unit.core.support import LAW

Sample = power_savings.CloudSample


class TestDelay(unittest.TestCase):

    def test_004_c_delay_req(self):
        self.assertAlmostEqual(1.2, power_savings.delay_req([
            power_savings.DelayedRequest(8, 180, 3600),
            power_savings.DelayedRequest(4, 120, 600)]))

    def test_no_samples(self):
        self.assertEqual(power_savings.EnergyTotals(),
                         power_savings.totals([], 100))
        self.assertEqual(0, power_savings.delay_req([]))


class TestTotals(unittest.TestCase):

    def test_004_a_res_idle(self):
        """The savings are 0 while all hosts are on."""
        found = power_savings.totals([
            Sample(0, 10, 0, 4), Sample(50, 10, 0, 10),
            Sample(80, 10, 0, 0)], 100)
        self.assertEqual(power_savings.EnergyTotals(idle_core_s=500), found)

    def test_004_b_e_savings(self):
        found = power_savings.totals([
            Sample(0, 8, 0, 8), Sample(20, 8, 3, 5), Sample(60, 8, 5, 3)],
            100)
        self.assertEqual(power_savings.EnergyTotals(saved_core_s=320), found)

    def test_kwh(self):
        found = power_savings.totals([
            Sample(0, watts=1000, watts_saved=200),
            Sample(3600, watts=None, watts_saved=100),
            Sample(7200, watts=500)], 9000)
        self.assertEqual((1.25, .3),
                         (found.used_kwh, round(found.saved_kwh, 12)))

    def test_a_pause_is_not_counted(self):
        samples = [Sample(0, 8, 2, 0), Sample(1000, 8, 2, 0)]
        found = power_savings.totals(samples, 2000, max_gap_s=100)
        self.assertEqual((400, 1200), (found.saved_core_s,
                                       found.idle_core_s))

    def test_samples_after_the_end_do_not_count(self):
        samples = [Sample(0, 1, 1), Sample(60, 1, 1), Sample(120, 1, 1)]
        self.assertEqual(90, power_savings.totals(samples, 90).saved_core_s)
        self.assertEqual(power_savings.EnergyTotals(),
                         power_savings.totals([], 90))

    @LAW
    @hypothesis.given(
        st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50)),
                 max_size=9, unique_by=lambda item: item[0]),
        st.integers(0, 1000))
    def test_a_time_cut_in_two_is_the_sum_of_both(self, items, cut_s):
        samples = [Sample(time_s, 50, off, 0, 100.0 * off, 10.0 * off)
                   for time_s, off in sorted(items)]
        whole = power_savings.totals(samples, 1000)
        first = power_savings.totals(samples, cut_s)
        held = [sample for sample in samples if sample.time_s <= cut_s]
        later = [sample for sample in samples if sample.time_s > cut_s]
        if held:
            last = held[-1]
            later.insert(0, Sample(cut_s, 50, last.cores_off, 0, last.watts,
                                   last.watts_saved))
        second = power_savings.totals(later, 1000)
        for name in ('idle_core_s', 'saved_core_s', 'used_kwh', 'saved_kwh'):
            self.assertAlmostEqual(
                getattr(whole, name),
                getattr(first, name) + getattr(second, name))
