# SPDX-License-Identifier: Apache-2.0
"""Many simulations at once."""

import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest
from unittest import mock

from nova_preempt import simulator
from nova_preempt.core import costs
from nova_preempt.simulator import simulation
from nova_preempt.simulator import sweep
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_model
from tests.unit.simulator import small


def die_once(job):
    """Take the process down the first time that a job is run."""
    mark = pathlib.Path(f'{job.paths[0]}.{job.seed}')
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return RUN(job)


RUN = sweep.run


class Case(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, 'trace.jsonl')
        load = generator.Load(1, 60, parts=(
            generator.LoadPart('normal', 1, 900, 1.0),
            generator.LoadPart('preemptible', 1, 1800, 1.0)))
        with open(self.path, 'w', encoding='utf-8') as stream:
            native_format.write(stream, generator.generate(load, 1))

    def jobs(self, *seeds):
        return [sweep.Job({'seed': seed}, small.cloud(4, 8),
                          small.options(cost=costs.youngest_first), 'json',
                          (self.path,), trace_model.MachineSize(), seed)
                for seed in seeds]


class TestProcesses(Case):

    def test_runs_in_processes_equal_single_runs(self):
        jobs = self.jobs(1, 2)
        found = {job.seed: summary for job, summary
                 in sweep.in_processes(jobs, 2)}
        self.assertEqual({job.seed: sweep.run(job) for job in jobs}, found)

    def test_a_run_of_a_dead_process_is_repeated(self):
        jobs = self.jobs(1)
        expected = sweep.run(jobs[0])
        with mock.patch.object(sweep, 'run', die_once):
            ((_, summary),) = sweep.in_processes(jobs, 1)
        self.assertEqual(expected, summary)

    def test_not_for_ever(self):
        with mock.patch.object(sweep, 'run', die_always), (
                mock.patch.object(sweep, 'MOST_TRIES', 2)), (
                self.assertRaisesRegex(sweep.RunsLost,
                                       'of 1 runs were killed 2 times')):
            list(sweep.in_processes(self.jobs(1), 1))

    def test_errors_of_a_trace_are_told(self):
        with open(self.path, 'a', encoding='utf-8') as stream:
            stream.write('what is this\n')
        with self.assertRaisesRegex(trace_model.TraceError, 'trace.jsonl'):
            list(sweep.in_processes(self.jobs(1), 1))

    def test_numpy_is_named(self):
        with mock.patch.object(sweep, 'run', run_without_numpy), (
                self.assertRaisesRegex(sweep.NotInstalled,
                                       r'nova-preempt\[simulator\]')):
            list(sweep.in_processes(self.jobs(1), 1))


def run_without_numpy(job):
    with mock.patch.dict(sys.modules,
                         {'nova_preempt.simulator.simulation': None}):
        del simulator.simulation
        try:
            return RUN(job)
        finally:
            simulator.simulation = simulation


def die_always(job):
    os.kill(os.getpid(), signal.SIGKILL)


class TestDask(Case):

    def test_the_extra_is_named(self):
        with mock.patch.dict(sys.modules, {'distributed': None}), (
                self.assertRaisesRegex(sweep.NotInstalled,
                                       r'nova-preempt\[dask\]')):
            list(sweep.on_dask(self.jobs(1), 'tcp://127.0.0.1:1'))


class TestMean(unittest.TestCase):

    def test_mean_of_figures(self):
        self.assertEqual(
            {'a': {'x': 2, 'y': 1.5}, 'n': 0.5},
            sweep.mean([{'a': {'x': 1, 'y': 1}, 'n': 1},
                        {'a': {'x': 3, 'y': 2}}]))

    def test_mean_of_summaries(self):
        trace = [small.boot(0, 'n', for_s=10)]
        summary = simulation.Simulation(small.cloud(),
                                        small.options()).run(trace)
        self.assertEqual(json.loads(json.dumps(summary)),
                         json.loads(json.dumps(sweep.mean([summary] * 3))))
