# SPDX-License-Identifier: Apache-2.0
"""Laws of powering hosts on and off."""

import dataclasses
import itertools
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.energy import power_plan
from tests.unit.core.support import LAW

AGGREGATES = 'xyz'


SUBSETS = [frozenset(subset) for number in range(4)
           for subset in itertools.combinations(AGGREGATES, number)]


@st.composite
def clouds(draw):
    """Draw hosts; one number determines all flags of a host."""
    drawn = draw(st.lists(
        st.tuples(st.integers(0, 31), st.integers(0, 8),
                  st.sampled_from([None, 1.0, 2.0, 3.5]),
                  st.sampled_from(SUBSETS)), max_size=12))
    return [power_plan.PowerHost(
        f'host{number}', on=bool(bits & 1), busy=bool(bits & 2),
        idle_intervals=intervals, efficiency=efficiency,
        reserved=bool(bits & 4), due=bool(bits & 8),
        excluded=bool(bits & 16), aggregates=aggregates)
        for number, (bits, intervals, efficiency, aggregates)
        in enumerate(drawn)]


policies = st.builds(
    power_plan.PowerPolicy,
    idle_intervals=st.integers(1, 6),
    spare=st.integers(0, 3),
    minimum=st.integers(0, 13),
    minimum_of=st.dictionaries(st.sampled_from(AGGREGATES),
                               st.integers(0, 5)),
    max_wakes=st.none() | st.integers(0, 4),
    max_sleeps=st.none() | st.integers(0, 4))

forecasts = st.floats(0, 14)


def by_name(cloud):
    return {host.name: host for host in cloud}


def on_after(cloud, switches):
    """Hosts that are on once all is done."""
    return [host for host in cloud
            if (host.on and host.name not in switches.sleep)
            or host.name in switches.wake]


def count(cloud, aggregate):
    return sum(aggregate in host.aggregates for host in cloud)


STEP_S = 10

starts = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 200)),
                  max_size=12)


class TestDue(unittest.TestCase):

    def wake(self, needed, per_minute):
        """{name: when it is woken}, stepping from an hour before.

        :param needed: {name: (when it is needed, its lead_s)}
        """
        woken = {}
        for now in range(-3600, 401, STEP_S):
            due = power_plan.due(
                [power_plan.ReservationStart(name, at - now, lead_s)
                 for name, (at, lead_s) in needed.items()
                 if name not in woken], per_minute, STEP_S)
            recent = sum(now - at < 60 for at in woken.values())
            for name in due[:per_minute - recent]:
                woken[name] = now
        return woken

    @LAW
    @hypothesis.given(starts, st.integers(1, 4))
    def test_all_are_up_in_time(self, drawn, per_minute):
        # A step is what it may take to see that it is time.
        needed = {f'host{number}': (at, boot_s + STEP_S)
                  for number, (at, boot_s) in enumerate(drawn)}
        woken = self.wake(needed, per_minute)
        for name, (at, lead_s) in needed.items():
            self.assertLessEqual(woken[name] + lead_s - STEP_S, at)

    @LAW
    @hypothesis.given(starts)
    def test_no_host_wakes_too_early_without_a_queue(self, drawn):
        needed = {f'host{number}': item
                  for number, item in enumerate(drawn)}
        for name, now in self.wake(needed, 100).items():
            later = [at - lead_s for at, lead_s in needed.values()
                     if at >= needed[name][0]]
            self.assertGreaterEqual(now, min(later))


class TestLaws(unittest.TestCase):

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_never_below_the_minimum(self, cloud, forecast, policy):
        """This holds even if hosts that are powered on never boot."""
        switches = power_plan.decide(cloud, forecast, policy)
        before = [host for host in cloud if host.on]
        left = [host for host in before
                if host.name not in switches.sleep]
        least = power_plan.required_hosts(cloud, forecast, policy)
        self.assertGreaterEqual(least, policy.minimum)
        self.assertGreaterEqual(len(left), min(least, len(before)))
        for aggregate, minimum in policy.minimum_of.items():
            self.assertGreaterEqual(
                count(left, aggregate),
                min(minimum, count(before, aggregate)))

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_no_used_or_needed_host_sleeps(self, cloud, forecast, policy):
        switches = power_plan.decide(cloud, forecast, policy)
        for name in switches.sleep:
            host = by_name(cloud)[name]
            self.assertTrue(host.on)
            self.assertFalse(host.busy)
            self.assertFalse(host.reserved)
            self.assertFalse(host.due)
            self.assertFalse(host.excluded)
            self.assertGreaterEqual(host.idle_intervals,
                                    policy.idle_intervals)
        for name in switches.wake:
            host = by_name(cloud)[name]
            self.assertFalse(host.on)
            self.assertFalse(host.excluded)

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_each_once_and_within_the_limits(self, cloud, forecast, policy):
        switches = power_plan.decide(cloud, forecast, policy)
        names = switches.wake + switches.sleep
        self.assertEqual(len(names), len(set(names)))
        for done, most in ((switches.wake, policy.max_wakes),
                           (switches.sleep, policy.max_sleeps)):
            if most is not None:
                self.assertLessEqual(len(done), most)

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_enough_are_on_as_far_as_there_are_any(self, cloud, forecast,
                                                   policy):
        policy = dataclasses.replace(policy, max_wakes=None)
        switches = power_plan.decide(cloud, forecast, policy)
        could = [host for host in cloud if host.on or not host.excluded]
        after = on_after(cloud, switches)
        self.assertGreaterEqual(len(after),
                                min(switches.required, len(could)))
        for aggregate, minimum in policy.minimum_of.items():
            self.assertGreaterEqual(count(after, aggregate),
                                    min(minimum, count(could, aggregate)))
        for host in cloud:
            if host.due and not host.on and not host.excluded:
                self.assertIn(host.name, switches.wake)

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_as_many_are_spare_as_there_may_be(self, cloud, forecast, policy):
        policy = dataclasses.replace(policy, max_wakes=None)
        after = on_after(cloud, power_plan.decide(cloud, forecast, policy))
        could = [host for host in cloud if host.on or not host.excluded]
        self.assertGreaterEqual(
            sum(map(self.is_spare, after)),
            min(policy.spare, sum(map(self.is_spare, could))))

    @staticmethod
    def is_spare(host):
        return not (host.busy or host.reserved or host.due)

    @LAW
    @hypothesis.given(clouds(), forecasts, policies,
                      st.randoms(use_true_random=False))
    def test_the_order_of_hosts_does_not_matter(self, cloud, forecast,
                                                policy, rng: random.Random):
        shuffled = list(cloud)
        rng.shuffle(shuffled)
        self.assertEqual(power_plan.decide(cloud, forecast, policy),
                         power_plan.decide(shuffled, forecast, policy))

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_the_reserved_wake_first_then_the_most_efficient(self, cloud,
                                                             forecast, policy):
        """The case has no minimum of aggregates and no due hosts."""
        cloud = [dataclasses.replace(host, due=False) for host in cloud]
        policy = dataclasses.replace(policy, minimum_of={})
        switches = power_plan.decide(cloud, forecast, policy)

        def key(host):
            return (not host.reserved, -(host.efficiency or 0), host.name)

        asleep = [host.name for host in sorted(cloud, key=key)
                  if not host.on and not host.excluded]
        # No reserved host is spare, and none with servers.
        kinds = {host.name: (host.reserved, host.busy) for host in cloud}
        for kind in set(kinds.values()):
            part = [name for name in asleep if kinds[name] == kind]
            woken = [name for name in switches.wake if name in part]
            self.assertEqual(part[:len(woken)], woken)
        # Without spare hosts there is one order.
        switches = power_plan.decide(cloud, forecast,
                                     dataclasses.replace(policy, spare=0))
        self.assertEqual(tuple(asleep[:len(switches.wake)]), switches.wake)

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_the_least_efficient_sleep_first(self, cloud, forecast, policy):
        """A host that stays on ranks no lower than one that sleeps."""
        policy = dataclasses.replace(policy, minimum_of={})
        switches = power_plan.decide(cloud, forecast, policy)
        idle = [host.name for host in sorted(
            cloud, key=lambda host: (host.efficiency or 0, host.name))
            if host.on and not (host.busy or host.reserved or host.due
                                or host.excluded)
            and host.idle_intervals >= policy.idle_intervals]
        self.assertEqual(tuple(idle[:len(switches.sleep)]), switches.sleep)

    @LAW
    @hypothesis.given(clouds(), forecasts, policies)
    def test_repeated_decisions_come_to_rest(self, cloud, forecast, policy):
        """Repeated decisions soon change nothing.

        And no host is switched there and back.
        """
        policy = dataclasses.replace(
            policy, max_wakes=policy.max_wakes and max(1, policy.max_wakes),
            max_sleeps=policy.max_sleeps and max(1, policy.max_sleeps))
        switched = []
        for _ in range(2 * len(cloud) + 1):
            switches = power_plan.decide(cloud, forecast, policy)
            if not switches.wake and not switches.sleep:
                break
            switched += [*switches.wake, *switches.sleep]
            on = {host.name for host in on_after(cloud, switches)}
            cloud = [dataclasses.replace(host, on=host.name in on)
                     for host in cloud]
        else:
            self.fail(f'still switching: {switches}')
        self.assertEqual(len(switched), len(set(switched)))
