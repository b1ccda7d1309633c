# SPDX-License-Identifier: Apache-2.0
"""Tests of the compared policies, on a trace that is worked out by hand.

Two hosts of four vCPUs; a server boots in 10 s and is deleted in 2 s. Nova's
weigher places s1 (1 vCPU) and s3 (2) on h-1, s2 (1) and s4 (2) on h-2, so one
vCPU of each host is free when the normal server n asks for three.
"""

import itertools
import unittest

import duel_policies
import duel_score

from nova_preempt.core import costs
from nova_preempt.core.notice_period import NoticeRule
from tests.unit.simulator import small
from tests.unit.simulator.small import boot

SPOTS = [boot(0, 's1', 1, spot=True), boot(1, 's2', 1, spot=True),
         boot(2, 's3', 2, spot=True), boot(3, 's4', 2, spot=True)]
NORMAL = boot(100, 'n', 3)


class TestPolicies(unittest.TestCase):

    def run_policy(self, policy, *trace, notice_s=0, seed=1, until_s=1000,
                   **settings):
        """Return (ids of the victims, Score)."""
        trace = sorted(trace, key=lambda each: each.at_us)
        victims = []

        class Noting(duel_score.Score):
            def record(self, record):
                super().record(record)
                if record['event'] == 'deleted':
                    victims.append(record['id'])

        score = Noting(notice_s, {
            each.id: each.resources['VCPU'] for each in trace})
        options = small.options(
            actions=('delete',), cost=costs.partial_hour,
            notice=NoticeRule(notice_s),
            enabled=policy is duel_policies.Contest)
        policy(small.cloud(2), options, seed, score, **settings).run(
            trace, until_s * 10**6)
        return sorted(victims), score

    def check(self, victims, delays_s, lost_vcpu_s, policy, *trace,
              **settings):
        found, score = self.run_policy(policy, *SPOTS, NORMAL, *trace,
                                       **settings)
        self.assertEqual(victims, found)
        self.assertEqual(delays_s, [each / 10**6 for each in score.delays_us])
        self.assertEqual(lost_vcpu_s, score.lost_vcpu_s)
        self.assertEqual(1 - len(delays_s), score.counts['refused', 'normal'])
        return score

    def test_first_fit(self):
        """s1 to s3 fill h-1, s4 leaves two vCPUs of h-2."""
        self.check([], [], 0, duel_policies.FirstFit)
        _, score = self.run_policy(duel_policies.FirstFit, *SPOTS,
                                   boot(100, 'n', 2))
        self.assertEqual([0], score.delays_us)
        self.assertEqual([], score.delayed_us)
        self.assertEqual(5, score.counts['decisions'])

    def test_nova_preempt(self):
        """The last to become active, at 13 s, is enough alone."""
        score = self.check(['s4'], [2], 2 * 87, duel_policies.Contest)
        self.assertEqual([2_000_000], score.delayed_us)

    def test_notice(self):
        """A victim runs until its notice is over, with each policy."""
        self.check(['s4'], [32], 2 * (87 + 30), duel_policies.Contest,
                   notice_s=30)
        self.check(['s1', 's3'], [32], 120 + 2 * 118, duel_policies.Blazar,
                   notice_s=30)

    def test_blazar(self):
        """Blazar deletes all preemptible servers of the first host."""
        self.check(['s1', 's3'], [2], 90 + 2 * 88, duel_policies.Blazar)

    def test_blazar_with_a_random_host(self):
        found = {tuple(self.run_policy(
            duel_policies.Blazar, *SPOTS, NORMAL, seed=seed,
            randomize_host_selection=True)[0]) for seed in range(10)}
        self.assertEqual({('s1', 's3'), ('s2', 's4')}, found)

    def test_aardvark_strict(self):
        """s3 leaves no memory unused, and its host comes first."""
        self.check(['s3'], [2], 2 * 88, duel_policies.Aardvark)

    def test_aardvark_reserves_nothing(self):
        """Another request takes a freed vCPU, and the reaper kills again."""
        self.check(['s1', 's3'], [4], 2 * 88 + 92, duel_policies.Aardvark,
                   boot(101, 'thief', 1, spot=True))

    def test_nova_preempt_hands_the_space_over(self):
        self.check(['s4'], [2], 2 * 87, duel_policies.Contest,
                   boot(101, 'thief', 1, spot=True))

    def test_aardvark_gives_up(self):
        """A server that leaves within its notice is rebuilt too early.

        Every 20 s the reaper finds no further victims: the request fails.
        """
        victims, score = self.run_policy(
            duel_policies.Aardvark, *SPOTS, NORMAL, notice_s=60)
        self.assertEqual(['s3', 's4'], victims)
        self.assertEqual(1, score.counts['refused', 'normal'])

    def test_aardvark_chance(self):
        """It deletes servers of a random host until the request fits."""
        allowed = {('s3',), ('s1', 's3'), ('s4',), ('s2', 's4')}
        found = {tuple(self.run_policy(
            duel_policies.Aardvark, *SPOTS, NORMAL, seed=seed,
            strategy='chance')[0]) for seed in range(30)}
        self.assertEqual(allowed, found)

    def test_aardvark_chance_makes_few_attempts(self):
        """If the small server comes first, one attempt is not enough."""
        found = {tuple(self.run_policy(
            duel_policies.Aardvark, *SPOTS, NORMAL, seed=seed,
            strategy='chance', max_attempts=1)[0]) for seed in range(30)}
        self.assertEqual({('s3',), ('s4',), ()}, found)

    def test_aardvark_watermark(self):
        """Every 10 s: 75 % of the vCPUs are in use at 20 s, so one ends."""
        for watermark, expected in ((75, 0), (70, 1)):
            victims, _ = self.run_policy(
                duel_policies.Aardvark, *SPOTS, watermark=watermark,
                until_s=50)
            self.assertEqual(expected, len(victims))

    def test_watcher_on_request(self):
        """s1 and s2 end first as they are the oldest, though in vain."""
        self.check(['s1', 's2', 's3'], [2], 90 + 89 + 2 * 88,
                   duel_policies.Watcher, free_percentage=0, min_age_s=0,
                   on_request=True)

    def test_watcher_spares_young_servers(self):
        self.check([], [], 0, duel_policies.Watcher, free_percentage=0,
                   min_age_s=91, on_request=True)

    def test_watcher_keeps_a_share_free(self):
        """Half of eight vCPUs: after 60 s s1 and s2 end, for no request."""
        self.check(['s1', 's2'], [], 50 + 49, duel_policies.Watcher,
                   free_percentage=50, min_age_s=0)
        _, score = self.run_policy(
            duel_policies.Watcher, *SPOTS, boot(100, 'n', 2),
            free_percentage=50, min_age_s=0)
        self.assertEqual([0], score.delays_us)

    def test_combinations(self):
        """Of sets with equal amounts, the smallest and first is kept."""
        amounts = [(1, 2), (2, 1), (2, 1), (3, 3), (1, 2)]
        left = (-3, -2)
        expected = {}
        for number in range(1, 6):
            for indices in itertools.combinations(range(5), number):
                over = tuple(map(sum, zip(left, *(
                    amounts[index] for index in indices), strict=True)))
                if min(over) >= 0:
                    expected.setdefault(over, indices)
        found = dict(duel_policies.combinations(left, amounts))
        least = min(expected)
        self.assertEqual(expected[least], found[least])
        self.assertLessEqual(found.items(), expected.items())
