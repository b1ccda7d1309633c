# SPDX-License-Identifier: Apache-2.0
"""Tests of readings and their sources."""

import datetime
import math
import sys
import threading
from unittest import mock

import fixtures
import hypothesis
from hypothesis import strategies

from nova_preempt import exceptions
from nova_preempt import plugins
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from tests.unit.core import support
from tests.unit.power import base

MAX_AGE_S = efficiency_ranking.MAX_AGE_S
MAX_WATTS = efficiency_ranking.MAX_WATTS


def at(age_s):
    return base.NOW - datetime.timedelta(seconds=age_s)


def find_fault(watts, age_s=0):
    return power_readings.find_fault(
        power_readings.Reading('h', watts, at(age_s)), base.NOW)


class TestPlausibility(base.PowerTestCase):

    def test_cases(self):
        for watts, age_s, fault in (
                (0, 0, None),
                (217.5, MAX_AGE_S, None),
                (MAX_WATTS, -power_readings.FUTURE_SLACK_S, None),
                (-0.1, 0, '-0.1 W is below 0'),
                (math.nan, 0, 'nan W is not a finite number'),
                (math.inf, 0, 'inf W is not a finite number'),
                (1e7, 0, '1e+07 W is more than 50000 W'),
                (10 ** 400, 0, 'the number of watts is too large'),
                ('200', 0, "'200' is not a number of watts"),
                (None, 0, 'None is not a number of watts'),
                (True, 0, 'True is not a number of watts'),
                (200, MAX_AGE_S + 1,
                 'the reading is 301 s old, more than 300 s'),
                (200, -61, 'the timestamp is 61 s in the future')):
            self.assertEqual(fault, find_fault(watts, age_s), watts)
        for time, fault in ((None, 'the reading has no timestamp'), (
                datetime.datetime(2026, 11, 20, 12),
                'the timestamp of the reading has no time zone')):
            self.assertEqual(fault, power_readings.find_fault(
                power_readings.Reading('h', 1, time), base.NOW))

    @support.LAW
    @hypothesis.given(
        strategies.one_of(strategies.floats(), strategies.integers(),
                          strategies.none(), strategies.text()),
        strategies.integers(-10 ** 6, 10 ** 6))
    def test_accepted_readings_are_plausible_and_recent(self, watts, age_s):
        passes = find_fault(watts, age_s) is None
        is_good = (isinstance(watts, (int, float))
                   and 0 <= watts <= MAX_WATTS
                   and -power_readings.FUTURE_SLACK_S <= age_s <= MAX_AGE_S)
        self.assertEqual(is_good, passes)

    @support.LAW
    @hypothesis.given(strategies.one_of(
        strategies.floats(), strategies.integers(), strategies.text(),
        strategies.none(), strategies.lists(strategies.none())))
    def test_a_time_or_none(self, value):
        time = power_readings.from_epoch(value)
        self.assertTrue(time is None or time.tzinfo is not None)


class Source:
    """Source that returns given readings, or fails."""

    def __init__(self, watts):
        self.watts = watts
        self.asked = []
        self.fault = None
        self.age_s = 0

    def read(self, hosts):
        self.asked.append(list(hosts))
        if self.fault:
            raise self.fault
        return {host: power_readings.Reading(host, watts, at(self.age_s))
                for host, watts in self.watts.items()}


class TestChain(base.PowerTestCase):

    def make(self, *sources):
        return power_readings.PowerReader(
            self.conf, [(f'source{number}', source)
                        for number, source in enumerate(sources)], base.clock)

    def read(self, chain, hosts):
        return {host: reading.watts
                for host, reading in chain.read(hosts).items()}

    def test_the_next_source_is_asked_for_missing_hosts(self):
        first = Source({'a': 1, 'b': -1, 'x': 9})
        second = Source({'a': 2, 'b': 2, 'c': 2})
        third = Source({'a': 3})
        chain = self.make(first, second, third)
        self.assertEqual({'a': 1, 'b': 2, 'c': 2},
                         self.read(chain, ['a', 'b', 'c']))
        self.assertEqual([['b', 'c']], second.asked)
        # Nobody is left to be read.
        self.assertEqual([], third.asked)

    def test_a_source_that_is_down_does_not_hold_the_others_up(self):
        for fault in (power_errors.SourceError('away'),
                      ZeroDivisionError('bug')):
            first, second = Source({'a': 1}), Source({'a': 2})
            first.fault = fault
            self.assertEqual({'a': 2},
                             self.read(self.make(first, second), ['a']))

    def test_faults_are_logged_when_they_begin_and_end(self):
        source = Source({'a': 1, 'b': -7})
        chain = self.make(source)
        for _time in range(3):
            self.assertEqual({'a': 1}, self.read(chain, ['a', 'b']))
        self.assertEqual(1, self.logger.output.count(
            'No reading from the power source source0 of host b: '
            '-7 W is below 0'))
        source.watts['b'] = 7
        chain.read(['a', 'b'])
        self.assertEqual(1, self.logger.output.count(
            'The power source source0 of host b gives readings again.'))
        source.fault = power_errors.SourceError('away')
        for _time in range(3):
            self.assertEqual({}, self.read(chain, ['a', 'b']))
        self.assertEqual(1, self.logger.output.count(
            'No reading from the power source source0: away'))
        source.fault = None
        chain.read(['a'])
        self.assertEqual(1, self.logger.output.count(
            'The power source source0 gives readings again.'))

    def test_a_source_that_hangs_is_passed_over_until_it_is_done(self):
        over = threading.Event()
        self.addCleanup(over.set)
        ended = threading.Event()

        class Hanging(Source):

            def read(self, hosts):
                result = super().read(hosts)
                over.wait(30)
                ended.set()
                return result

        self.useFixture(fixtures.MockPatchObject(power_readings, 'TIMEOUT_S',
                                                 1))
        self.useFixture(readings_grace(0.1))
        hanging, second = Hanging({'a': 1}), Source({'a': 2})
        chain = self.make(hanging, second)
        for _time in range(2):
            self.assertEqual({'a': 2}, self.read(chain, ['a']))
        self.assertEqual([['a']], hanging.asked)
        over.set()
        ended.wait(30)
        chain._sources[0][1]._thread.join()
        self.assertEqual({'a': 1}, self.read(chain, ['a']))

    @support.LAW
    @hypothesis.given(strategies.lists(strategies.dictionaries(
        strategies.sampled_from('abcd'), strategies.floats()), max_size=4))
    def test_law(self, tables):
        """Each host has the first plausible reading, or none has one."""
        found = self.read(self.make(*map(Source, tables)), list('abc'))
        expected = {}
        for host in 'abc':
            for table in tables:
                if host in table and 0 <= table[host] <= MAX_WATTS:
                    expected[host] = table[host]
                    break
        self.assertEqual(expected, found)


def readings_grace(seconds):
    return fixtures.MonkeyPatch('nova_preempt.power.power_readings._GRACE_S',
                                seconds)


class TestConfigured(base.PowerTestCase):

    def test_sources_of_the_configuration(self):
        path = self.write('watts.yaml', {'a': 210})
        self.set(sources=['static'], static_file=path)
        chain = power_readings.PowerReader(self.conf)
        reading, = chain.read(['a', 'b']).values()
        self.assertEqual(('a', 210), (reading.host, reading.watts))
        # Another number counts at once, rubbish does not.
        self.write('watts.yaml', {'a': 220})
        self.assertEqual(220, chain.read(['a'])['a'].watts)
        for text in ('a: many', 'a: [', '- a', 'a:'):
            self.write('watts.yaml', text)
            self.assertEqual({}, chain.read(['a']), text)
        self.assertIn(f"{path}: host a: must be of type 'number'",
                      self.logger.output)

    def test_no_sources(self):
        self.assertEqual({}, power_readings.PowerReader(self.conf).read(['a']))

    def test_static_without_a_file(self):
        self.set(sources=['static'])
        self.assertEqual({}, power_readings.PowerReader(self.conf).read(['a']))
        self.assertIn('[energy]static_file is not set', self.logger.output)

    def test_a_missing_library(self):
        name = 'nova_preempt.power.drivers.redfish_power'
        with mock.patch.dict(sys.modules, {'sushy': None}):
            sys.modules.pop(name, None)
            exc = self.assertRaises(
                exceptions.InvalidConfiguration, plugins.load,
                'nova_preempt.power_driver', 'redfish',
                '[energy]driver names')
        self.assertIn("[energy]driver names 'redfish', which cannot be "
                      'loaded: import of sushy', str(exc))

    def test_unknown_source(self):
        self.set(sources=['static', 'sundial'])
        exc = self.assertRaises(exceptions.InvalidConfiguration,
                                power_readings.PowerReader, self.conf)
        self.assertIn("[energy]sources names 'sundial'; known are: gnocchi, "
                      'kwapi, prometheus, redfish, static', str(exc))
