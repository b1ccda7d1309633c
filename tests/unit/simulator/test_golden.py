# SPDX-License-Identifier: Apache-2.0
"""Simulations whose every figure is known: a change of one is seen here.

Where a change is meant, ``OS_WRITE_GOLDEN=1`` writes the files anew.
"""

import json
import os
import pathlib
import unittest

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces import trace_formats
from tests.unit.simulator import small

GOLDEN = pathlib.Path(__file__).parent / 'golden'
SAMPLES = pathlib.Path(__file__).parent / 'traces' / 'samples'


def deleted():
    """A small cloud that is full at noon, as the defaults have it."""
    load = generator.Load(24, 60, swing=0.6, parts=(
        generator.LoadPart('normal', 2, 3000, 1.0),
        generator.LoadPart('preemptible', 1, 9000, 1.5)))
    return (small.cloud(12, 8, delays=delays.Delays()), small.options(),
            generator.generate(load, 1))


def shelved():
    """Returning servers, promises, budgets and run times."""
    load = generator.Load(12, 80, parts=(
        generator.LoadPart('normal', 1, 2400, 0.5),
        generator.LoadPart('preemptible', 1, 4800, 1.0)))
    return (small.cloud(12, 8, delays=delays.Delays(), spread=False,
                        terms=simulation_settings.PreemptibleTerms(
                            action='shelve', restore=True,
                            maximum_runtime_s=7200)),
            small.options(cost=costs.youngest_first, project_budget=5,
                          rules=eligibility.Rules(minimum_runtime_s=300),
                          notice=NoticeRule(120), restore_at_once=3),
            generator.generate(load, 2))


def google():
    """A trace of another's format."""
    return (
        small.cloud(
            2, 8, classes={
                'silver': simulation_settings.PreemptibleTerms(
                    )}), small.options(),
        trace_formats.Trace('google2011', [str(SAMPLES / 'google2011.csv')]))


def figures(value, name=''):
    """Yield (name, figure) of all in a summary."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        yield from figures(inner, f'{name}.{key}' if name else key)


def changes(expected, found):
    """Return the changes, a line for each figure."""
    before, after = dict(figures(expected)), dict(figures(found))
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, 0), after.get(name, 0)
        if old != new:
            share = f' ({100 * (new - old) / old:+.2f} %)' if old else ''
            lines.append(f'{name}: {old} -> {new}{share}')
    return lines


class TestGolden(unittest.TestCase):

    def test_deleted(self):
        found = self.check(deleted)
        self.assertGreater(found['decisions']['preemptions'], 50)

    def test_shelved(self):
        found = self.check(shelved)
        self.assertGreater(found['classes']['preemptible']['back'], 20)

    def test_google(self):
        self.check(google)

    def check(self, make):
        setup, options, trace = make()
        found = json.loads(json.dumps(
            simulation.Simulation(setup, options, 7).run(trace)))
        path = GOLDEN / f'{make.__name__}.json'
        if os.environ.get('OS_WRITE_GOLDEN'):
            path.write_text(json.dumps(found, indent=1) + '\n')
        lines = changes(json.loads(path.read_text()), found)
        if lines:
            self.fail('\n'.join(['these figures have changed:', *lines]))
        return found


class TestChanges(unittest.TestCase):

    def test_they_are_named(self):
        self.assertEqual(
            ['a.b: 4 -> 5 (+25.00 %)', 'a.c: 0 -> 1',
             'd: 2 -> 0 (-100.00 %)'],
            changes({'a': {'b': 4}, 'd': 2, 'e': 1},
                    {'a': {'b': 5, 'c': 1}, 'e': 1}))
