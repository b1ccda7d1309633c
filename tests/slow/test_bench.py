# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""The benchmarks still run. Their figures are for people to look at."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).parents[2] / 'bench'


class TestBench(unittest.TestCase):
    """Those that are built upon others, on the smallest of clouds."""

    def run_bench(self, name, *arguments):
        done = subprocess.run(
            [sys.executable, BENCH / name, *arguments], check=False,
            text=True, capture_output=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_batch(self):
        printed = self.run_bench('batch.py', '--hosts', '8', '--requests',
                                 '5', '--repetitions', '1')
        self.assertIn('exact, dp, order first', printed)
        printed = self.run_bench('batch.py', '--victims', '--cases', '3')
        self.assertIn('both at once', printed)

    def test_ecsched(self):
        """Sixty at once: ten of them wait where fifty start in a step."""
        with tempfile.NamedTemporaryFile('w') as file:
            for number in range(60):
                file.write(f'{number} 3 9 2 1\n')
            file.flush()
            printed = self.run_bench('ecsched.py', file.name)
        for line in ('together, 5 rounds of 100  dp:    9.000',
                     'together, 5 rounds of 100  ml:    9.000',
                     'one by one, 50 in a step   dp:    9.167'):
            self.assertIn(line, printed)

    def test_energy(self):
        printed = self.run_bench('energy.py', '--hosts', '4',
                                 '--repetitions', '1')
        for ranking in ('efficiency', 'marginal'):
            self.assertIn(f'{ranking}, hosts weighed: 4', printed)

    def test_schedule(self):
        printed = self.run_bench('schedule.py', '--hosts', '4', '--cases',
                                 'c', '--repetitions', '1')
        self.assertIn('ours, preempting / retry', printed)
