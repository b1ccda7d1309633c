# SPDX-License-Identifier: Apache-2.0
"""Benchmarks still run, and measure something."""

import re
import tempfile
import unittest

from tests import benches

# Its file is made here.
ECSCHED = 'ecsched'
# Too slow, or without a file, see there.
NOT_RUN_BY_MAKE = {'notice', ECSCHED}


class TestBench(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.NamedTemporaryFile('w') as file:
            # Ten of them wait where fifty start in a step.
            for number in range(60):
                file.write(f'{number} 3 9 2 1\n')
            file.flush()
            cls.printed = benches.run(
                *benches.PLAIN, f'{ECSCHED} {file.name}')

    def test_each_runs(self):
        self.assertEqual({*benches.names(benches.PLAIN), ECSCHED},
                         self.printed.keys())
        for name, printed in self.printed.items():
            with self.subTest(name=name):
                self.assertEqual('', benches.fault(printed))
                self.assertRegex(printed, r'\d')

    def test_a_failing_benchmark(self):
        for printed in ('done', 'MISSED: 1 s\nexit status: True\n',
                        'exit status: 1\nMISSED: 1 s'):
            self.assertEqual('', benches.fault(printed))
        for printed in ('exit status: 1', 'MISSED: 1 s\nexit status: 2',
                        'exit status: no host', 'Traceback (most'):
            self.assertNotEqual('', benches.fault(printed))

    def test_all_benchmarks_are_run(self):
        self.assertEqual(
            benches.all_names(),
            {*benches.names((*benches.PLAIN, *benches.WITH_CLOUD)), ECSCHED})

    def test_benchmarks_of_make_bench(self):
        makefile = (benches.BENCH.parent / 'Makefile').read_text()
        listed = re.search(r'^BENCHES = ((?:.*\\\n)*.*)', makefile, re.M)[1]
        self.assertEqual(
            benches.all_names() - NOT_RUN_BY_MAKE,
            set(re.findall(r'bench/(\w+)\.py', listed)))

    def test_hosts_are_reserved(self):
        printed = self.printed['reservations']
        for case in ('one host now', 'one of few in an hour',
                     'a tenth for a day', 'half for four hours',
                     'all for a day'):
            self.assertRegex(printed, rf'(?m)^{case} .* \d+:\d\d:\d\d$')
        self.assertRegex(printed, r'scheduler: leases +\d')

    def test_batch(self):
        self.assertIn('exact, dp', self.printed['batch'])

    def test_ecsched(self):
        for line in ('together, 5 rounds of 100  dp:    9.000',
                     'together, 5 rounds of 100  ml:    9.000',
                     'one by one, 50 in a step   dp:    9.167'):
            self.assertIn(line, self.printed[ECSCHED])
