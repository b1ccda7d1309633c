# SPDX-License-Identifier: Apache-2.0
"""Tests of the report of hosts, requests and outcomes."""

import testtools

from nova_preempt.embedded import scenario as scenarios
from nova_preempt.embedded import scenario_report
from tests.unit.embedded import builders as b

SCENARIO = scenarios.Scenario(
    '', (), {'flavor': scenarios.Flavor(1, 10, 0)}, (), ())
HOSTS = [b.host('h1', 2, b.server('a', cost_min=5), b.server('b')),
         b.host('host2', 10, b.server('long-name', 10, cost_min=12))]


class TestText(testtools.TestCase):

    def assert_says(self, rows, sentence, *args, hosts=HOSTS, **kwargs):
        lines = scenario_report.outcome(SCENARIO, b.outcome(*args, **kwargs),
                                        hosts)
        self.assertEqual(rows, [line[2:] for line in lines[:len(rows)]])
        self.assertEqual(sentence, ' '.join(
            line[2:] for line in lines[len(rows):]))

    def test_hosts(self):
        self.assertEqual([
            '', 'Before',
            '  h1       2/2 vCPUs  0/1000 MB  0/100 GB',
            '    a          flavor  65 min  preemptible, costs 5 min',
            '    b          flavor  60 min',
            '  host2  10/10 vCPUs  0/1000 MB  0/100 GB',
            '    long-name  flavor  72 min  preemptible, costs 12 min',
        ], scenario_report.hosts('Before', HOSTS))

    def test_empty_hosts(self):
        self.assertEqual(
            ['', 'After', '  h1  0/2 vCPUs  0/1000 MB  0/100 GB'],
            scenario_report.hosts('After', [b.host('h1', 2)]))

    def test_request(self):
        self.assertEqual(
            ['', 'Request new: flavor, preemptible, 1 vCPUs, 10 MB, 0 GB'],
            scenario_report.request(SCENARIO,
                                    scenarios.Request('new', 'flavor', True)))

    def test_victims_and_the_next_best(self):
        self.assert_says(
            ['h1     a           5 min  <- chosen',
             'host2  long-name  12 min'],
            'a on h1 is evicted, at a cost of 5 min; the next best, '
            'long-name on host2, would cost 12 min.',
            b.choice('h1', 'a', cost_min=5),
            b.choice('host2', 'long-name', cost_min=12))

    def test_only_one_host_can_serve(self):
        self.assert_says(
            ['h1     a, c             5 min  <- chosen',
             'host2  cannot serve it'],
            'a, c on h1 are evicted, at a cost of 5 min; no other host can '
            'serve it.', b.choice('h1', 'a', 'c', cost_min=5))

    def test_room(self):
        self.assert_says(
            ['host2  none  0 min  <- chosen', 'h1     a     5 min'],
            'host2 has free space, so no server is evicted.',
            b.choice('host2'), b.choice('h1', 'a', cost_min=5))

    def test_no_host(self):
        self.assert_says(
            ['h1  cannot serve it', 'h2  cannot serve it'],
            'No host would have space, even without its preemptible '
            'servers: h1 has 0 vCPUs, h2 has 0 vCPUs.', None,
            hosts=[b.host('h1', 1, b.server('a', 1)), b.host('h2', 0)])

    def test_no_host_for_a_preemptible_request(self):
        self.assert_says(
            ['h1     cannot serve it', 'host2  cannot serve it'],
            'No host has space, and a preemptible server evicts no other: h1 '
            'has 0 vCPUs, host2 has 0 vCPUs free.', None, preemptible=True)

    def test_nothing_is_wider_than_a_hundred_columns(self):
        names = [f'{number:a>24}' for number in range(20)]
        server = b.server('s' * 24, cost_min=1)._replace(
            flavor='f' * 24, uptime_us=scenarios.MAX_UPTIME_MIN * 60_000_000)
        hosts = [b.host('h' * 24, 2**31 - 1, server)]
        lines = [
            *scenario_report.title('x' * 20, SCENARIO),
            *scenario_report.hosts('', hosts),
            *scenario_report.outcome(SCENARIO, b.outcome(
                b.Choice('h' * 24, tuple(names), 3600_000_001)), hosts)]
        self.assertEqual([], [line for line in lines if len(line) > 100])

    def test_minutes(self):
        for cost_us, text in ((0, '0 min'), (600_000_000, '10 min'),
                              (1_500_000, '0.025 min'), (1, '0 min'),
                              (90_000_000, '1.5 min')):
            self.assertEqual(text, scenario_report._minutes(cost_us))


class TestJSON(testtools.TestCase):

    def test_placed(self):
        result = b.outcome(b.Choice('h1', ('a', 'b'), 1_500_000),
                           b.choice('h2', 'c', cost_min=5))
        considered = [{'host': 'h1', 'victims': ['a', 'b'], 'cost_s': 1.5},
                      {'host': 'h2', 'victims': ['c'], 'cost_s': 300}]
        self.assertEqual(
            {'requests': [{'name': 'new', 'outcome': 'placed',
                           **considered[0], 'considered': considered}]},
            scenario_report.as_json([result]))

    def test_not_placed(self):
        self.assertEqual(
            {'requests': [{'name': 'new', 'outcome': 'no_valid_host',
                           'host': None, 'victims': [], 'cost_s': None,
                           'considered': []}]},
            scenario_report.as_json([b.outcome(None)]))


class TestDifferences(testtools.TestCase):

    def differences(self, result, **expected):
        return scenario_report.differences(scenarios.Expectation(**expected),
                                           result)

    def test_as_expected(self):
        result = b.outcome(b.choice('h1', 'a', cost_min=1))
        self.assertEqual([], self.differences(result))
        self.assertEqual([], self.differences(
            result, outcome='placed', host='h1', victims=('a',),
            cost_us=60_000_000))

    def test_each_difference_is_reported(self):
        result = b.outcome(b.choice('h1', 'a', cost_min=1))
        self.assertEqual(
            ['outcome is placed, not no_valid_host as expected',
             'host is h1, not h2 as expected',
             'victims are a, not b, c as expected',
             'cost is 60 s, not 0.5 s as expected'],
            self.differences(result, outcome='no_valid_host', host='h2',
                             victims=('b', 'c'), cost_us=500_000))

    def test_not_placed(self):
        result = b.outcome(None)
        self.assertEqual([], self.differences(
            result, outcome='no_valid_host', victims=()))
        self.assertEqual(
            ['host is none, not h1 as expected',
             'victims are none, not a as expected',
             'cost is none, not 0 s as expected'],
            self.differences(result, host='h1', victims=('a',), cost_us=0))
