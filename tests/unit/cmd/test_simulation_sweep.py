# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-simulate sweep."""

import json
import pathlib
import pickle
from unittest import mock

from nova_preempt.simulator import sweep
from tests.unit.cmd import simulation


class TestSweep(simulation.Case):

    def sweep(self, *args):
        def in_order(jobs, count):
            # As processes would, which tests of their own have.
            for job in jobs:
                yield job, sweep.run(pickle.loads(pickle.dumps(job)))

        with mock.patch.object(sweep, 'in_processes', in_order):
            return self.main('sweep', '--cloud', self.cloud, self.trace,
                             *args)

    def test_means_of_all_seeds(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        code, out, _ = self.sweep('--policy', off, '--seeds', '0-2')
        self.assertEqual(0, code)
        lines = out.splitlines()
        self.assertEqual('means of 3 seeds', lines[0])
        rows = dict(line.rsplit('  ', 1) for line in lines[1:])
        rows = {name.strip(): value for name, value in rows.items()}
        self.assertEqual('1', rows['normal: refused'])

    def test_a_line_for_each_run(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        other = self.write('other.jsonl', simulation.TRACE)
        code, out, _ = self.sweep(other, '--policy', off, '--policy',
                                  self.write('on.conf', ''), '--seeds', '3-4',
                                  '--json')
        self.assertEqual(0, code)
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(8, len(found))
        self.assertEqual({self.trace, other},
                         {each['trace'] for each in found})
        for each in found:
            self.assertEqual(
                1 if each['policy'] == off else 0,
                each['classes']['normal'].get('refused', 0))

    def test_policies_are_sent_to_other_processes(self):
        policy = self.write(
            'all.conf', '[preemption]\nactions = shelve\n'
            '[backlog]\nenabled = true\norder = qos\n'
            'batch_mode = greedy\n[reservation]\nenabled = true\n'
            '[energy]\nenabled = true\n[classes]\nenabled = true\n'
            'qos_class = name:gold,importance:1,availability:0.9\n')
        code, _, err = self.sweep('--policy', policy, '--seeds', '1')
        self.assertEqual((0, ''), (code, err))

    def test_a_trace_that_does_not_fit_the_cloud(self):
        self.trace = self.write(
            'other.jsonl',
            '{"t": 0, "kind": "boot", "id": "x", "flavor": "huge"}')
        code, out, err = self.sweep('--seeds', '1')
        self.assertEqual((1, ''), (code, out))
        self.assertEqual(
            f"nova-preempt-simulate: {self.trace}: server x has the unknown "
            "flavor 'huge'; the known flavors are: small, spot\n", err)

    def test_an_interrupted_one_goes_on(self):
        ran = []

        def two_at_most(jobs, count):
            for job in jobs[:2]:
                ran.append(job.seed)
                yield job, sweep.run(job)
            raise KeyboardInterrupt

        keep = str(self.directory / 'new' / 'kept')
        expected = self.sweep('--seeds', '0-2')[1]
        with mock.patch.object(sweep, 'in_processes', two_at_most):
            code, out, _ = self.main('sweep', '--cloud', self.cloud,
                                     self.trace, '--seeds', '0-2',
                                     '--keep', keep)
        self.assertEqual((130, '', [0, 1]), (code, out, ran))
        for found in (2, 3):
            self.assertEqual(
                (0, expected, (f'nova-preempt-simulate: {found} of 3 runs '
                               f'are in {keep}\n')),
                self.sweep('--seeds', '0-2', '--keep', keep))

    def test_a_run_of_which_something_has_changed_is_another(self):
        keep = str(self.directory / 'kept')
        policy = self.write('a.conf', '')
        args = ['--policy', policy, '--seeds', '1', '--keep', keep, '--json']

        def found(*more):
            code, out, err = self.sweep(*args, *more)
            self.assertEqual(0, code, err)
            return err.rpartition(': ')[2][:1], json.loads(out)

        count, first = found()
        self.assertEqual('0', count)
        self.assertEqual(('1', first), found())
        for change in (lambda: self.write('a.conf', '[preemption]\n'
                                                    'enabled = false\n'),
                       lambda: self.write(pathlib.Path(self.trace).name,
                                          simulation.TRACE + '\n'),
                       lambda: self.write(pathlib.Path(self.cloud).name,
                                          simulation.CLOUD + '\n')):
            change()
            self.assertEqual('0', found()[0])
            self.assertEqual('1', found()[0])
        for more in (['--until-s', '100'], ['--sort'], ['--seeds', '2'],
                     ['--machine-vcpus', '9']):
            self.assertEqual('0', found(*more)[0], more)

    def test_a_damaged_run_is_made_again(self):
        keep = self.directory / 'kept'
        args = ['--seeds', '1', '--keep', str(keep)]
        expected = self.sweep(*args)[1]
        (file,) = keep.iterdir()
        for damage in (b'', b'{"run": {}', b'[]', b'{"summary": {}}'):
            file.write_bytes(damage)
            code, out, err = self.sweep(*args)
            self.assertEqual((0, expected), (code, out))
            self.assertIn('0 of 1 runs', err)
        self.assertEqual([file], list(keep.iterdir()))
        file.unlink()
        code, _, err = self.sweep('--seeds', '1', '--keep', self.trace)
        self.assertEqual(1, code)
        self.assertIn(f'File exists: {self.trace!r}', err)

    def test_seeds(self):
        for wrong in ('a', '3-1', '1-2-3', '0-100000', '-1'):
            code, _, _ = self.sweep(f'--seeds={wrong}')
            self.assertEqual(2, code, wrong)
