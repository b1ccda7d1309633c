# SPDX-License-Identifier: Apache-2.0
"""Simulations on a cluster of Dask, of which a worker is lost."""

import importlib.util
import os
import pathlib
import signal
import tempfile
import unittest
from unittest import mock

from nova_preempt.core import costs
from nova_preempt.simulator import sweep
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_model
from tests.unit.simulator import small

RUN = sweep.run


def die_once_in_all(job):
    """Take the worker down, the first time that any job is run."""
    mark = pathlib.Path(f'{job.paths[0]}.lost')
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return RUN(job)


@unittest.skipUnless(importlib.util.find_spec('distributed'),
                     'the extra dask is not installed')
class TestDask(unittest.TestCase):

    def test_one_of_two_workers_is_lost(self):
        import distributed

        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, 'trace.jsonl')
        load = generator.Load(1, 60, parts=(
            generator.LoadPart('normal', 1, 900, 1.0),
            generator.LoadPart('preemptible', 1, 1800, 1.0)))
        with open(path, 'w', encoding='utf-8') as stream:
            native_format.write(stream, generator.generate(load, 1))
        jobs = [sweep.Job({'seed': seed}, small.cloud(4, 8),
                          small.options(cost=costs.youngest_first), 'json',
                          (path,), trace_model.MachineSize(), seed)
                for seed in range(4)]
        with distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True,
                dashboard_address=None) as cluster, (
                mock.patch.object(sweep, 'run', die_once_in_all)):
            found = {job.seed: summary for job, summary
                     in sweep.on_dask(jobs, cluster.scheduler_address)}
        self.assertEqual({job.seed: sweep.run(job) for job in jobs}, found)
        self.assertTrue(pathlib.Path(f'{path}.lost').exists())
