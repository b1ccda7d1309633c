# SPDX-License-Identifier: Apache-2.0
"""The benchmark: its runs, its meter and its output."""

import contextlib
import datetime
import io
import itertools
import json
import os
import statistics
import threading
from unittest import mock

import hypothesis
from hypothesis import strategies

from nova_preempt.cmd import benchmark as cmd_benchmark
from nova_preempt.power import dgemm
from nova_preempt.power import host_benchmark
from nova_preempt.power import hosts_file
from nova_preempt.power import power_readings
from tests.unit.client import test_preemption_commands
from tests.unit.core import support
from tests.unit.power import base

# As HPL 2.3 prints it, but for the width.
HPL_OUTPUT = """
T/V                N    NB     P     Q           Time             Gflops
------------------------------------------------------------------------
WR11C2R4       29184   192     2     2         262.43         6.3146e+01
HPL_pdgesv() start time Thu Nov 19 10:00:00 2026
------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 2.51e-03 ...... PASSED
WR11R2L2       29184   192     1     4         270.10         6.1350e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 2.51e-03 ...... PASSED
"""


class TestRuns(base.PowerTestCase):

    def measure(self, flops, spread=0.1, max_runs=20, **more):
        return host_benchmark.measure_flops(
            map(float, flops).__next__, spread, max_runs, **more)

    def test_until_three_agree(self):
        self.assertEqual((100, 0, 3), self.measure([100] * 9))
        median, spread, runs = self.measure([50, 80, 100, 104, 96, 1000])
        self.assertEqual((100, 5), (median, runs))
        self.assertAlmostEqual(0.08, spread)

    def test_they_never_agree(self):
        _median, spread, runs = self.measure(itertools.cycle([50, 100]),
                                             max_runs=7)
        self.assertEqual(7, runs)
        self.assertEqual(1.0, spread)

    def test_on_until_there_is_a_reading(self):
        enough = iter([False, False, True])
        self.assertEqual(5, self.measure(
            [100] * 9, is_enough=lambda: next(enough))[2])
        self.assertEqual(9, self.measure(
            [100] * 9, max_runs=9, is_enough=lambda: False)[2])

    @support.LAW
    @hypothesis.given(strategies.lists(strategies.floats(1e-3, 1e18),
                                       min_size=30), strategies.floats(0, 1))
    def test_law(self, flops, spread):
        """It ends with the first three in a row that agree, or the last."""
        median, reached, runs = self.measure(flops, spread, 30)
        self.assertEqual(statistics.median(flops[runs - 3:runs]), median)
        self.assertTrue(3 <= runs <= 30)
        self.assertTrue(reached <= spread or runs == 30)
        for earlier in range(3, runs):
            last = flops[earlier - 3:earlier]
            self.assertGreater((max(last) - min(last))
                               / statistics.median(last), spread)


class Source:
    """Source with a new reading each time."""

    def __init__(self, *watts):
        self.watts = list(watts)
        self.now = base.NOW
        self.read_all = threading.Event()

    def clock(self):
        return self.now

    def read(self, hosts):
        if not self.watts:
            self.read_all.set()
            return {}
        self.now += datetime.timedelta(seconds=10)
        host, = hosts
        return {host: power_readings.Reading(host, self.watts.pop(0),
                                             self.now)}


class TestMeter(base.PowerTestCase):

    def read(self, source, settle_s=0):
        with host_benchmark.PowerMeter(source, 'a', 0.001, settle_s,
                                  source.clock) as meter:
            self.assertTrue(source.read_all.wait(60))
        return meter.watts

    def test_mean(self):
        self.assertEqual(300, self.read(Source(100, 200, 600)))

    def test_no_source_has_a_reading(self):
        self.assertIsNone(self.read(Source()))

    def test_the_first_seconds_do_not_count(self):
        self.assertEqual(400, self.read(Source(100, 200, 600), 20))

    def test_a_reading_counts_once_and_not_if_it_is_older(self):
        source = Source()
        old = power_readings.Reading(
            'a', 7, base.NOW - datetime.timedelta(seconds=1))
        now = power_readings.Reading('a', 9, base.NOW)
        given = [old, now, now, now]

        def read(hosts):
            if not given:
                source.read_all.set()
                return {}
            return {'a': given.pop(0)}

        source.read = read
        self.assertEqual(9, self.read(source))


class TestBlas(base.PowerTestCase):

    def make(self):
        blas = host_benchmark.Blas(64, 0.01,
                                   [min(os.sched_getaffinity(0))] * 2)
        self.addCleanup(blas.close)
        return blas

    def test_real(self):
        blas = self.make()
        for _run in range(2):
            self.assertGreater(blas.run(), 1e5)
        blas.close()
        for worker in blas._workers:
            self.assertIsNotNone(worker.returncode)

    def test_a_process_ends(self):
        blas = self.make()
        blas._workers[1].kill()
        blas._workers[1].wait()
        self.assertRaises(host_benchmark.BenchmarkError, blas.run)

    def test_products_are_counted_until_the_time_is_over(self):
        seconds = itertools.count(100, 3)
        self.assertEqual((4, 12), dgemm.multiply(
            8, 10, lambda: next(seconds)))

    def test_without_numpy(self):
        # None: the import fails.
        with mock.patch.dict('sys.modules', numpy=None):
            exc = self.assertRaises(host_benchmark.BenchmarkError, self.make)
        self.assertIn("pip install 'nova-preempt[benchmark]'", str(exc))


class TestHpl(base.PowerTestCase):

    def run_hpl(self, output, status=0):
        (self.directory / 'out').write_text(output)
        return host_benchmark.Hpl(['sh', '-c', f'cat out; exit {status}'],
                                  str(self.directory)).run()

    def test_best(self):
        self.assertEqual(6.3146e10, self.run_hpl(HPL_OUTPUT))

    def test_failures(self):
        for output, status in ((HPL_OUTPUT, 1), ('', 0), ('no HPL.dat', 0), (
                HPL_OUTPUT.replace('PASSED', 'FAILED'), 0)):
            self.assertRaises(host_benchmark.BenchmarkError, self.run_hpl,
                              output, status)
        self.assertRaises(host_benchmark.BenchmarkError, host_benchmark.Hpl(
            ['/nothing/xhpl'], '.').run)


class TestCommand(base.PowerTestCase):
    """Small matrices, on whatever the machine has left."""

    def setUp(self):
        super().setUp()
        self.files = [str(self.directory / 'nova.conf')]
        self.output = str(self.directory / 'figures.yaml')

    def run_command(self, *arguments, code=0):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(out):
            result = cmd_benchmark.main([
                '--host', 'node1', '--size', '32', '--run-s', '0.01',
                '--spread', '1000', '--max-runs', '5', '--idle-s', '0',
                '--interval-s', '0.01', '--settle-s', '0',
                *(f'--config-file={name}' for name in self.files),
                *arguments])
        self.assertEqual(code, result, out.getvalue())
        return out.getvalue()

    def configure_watts(self, more=''):
        path = self.write('watts.yaml', {'node1': 200})
        self.configure(f'[energy]\nsources = static\nstatic_file = {path}\n'
                       + more)

    def test_without_a_source(self):
        text = self.run_command()
        self.assertIn('FLOPS', text)
        self.assertIn('unknown W', text)

    def test_json(self):
        self.configure_watts()
        figures = json.loads(self.run_command('--json'))
        self.assertEqual(
            ('node1', 200, 200, 'BLAS dgemm'),
            tuple(figures[name] for name in ('host', 'watts', 'idle_watts',
                                             'source')))
        self.assertEqual(figures['flops'] / 200, figures['flops_per_watt'])
        self.assertGreaterEqual(figures['runs'], 3)

    def test_a_file_keeps_other_hosts(self):
        self.configure_watts()
        self.write('figures.yaml', 'node1: {flops: 1}\n'
                   'off: {flops: 1.5e12, watts: 350}\n')
        self.run_command('--output', self.output)
        with open(self.output, encoding='utf-8') as stream:
            content = hosts_file.load_document(stream)
        self.assertEqual({'flops': 1.5e12, 'watts': 350}, content['off'])
        self.assertEqual(['flops', 'idle_watts', 'watts'],
                         sorted(content['node1']))
        self.assertGreater(content['node1']['flops'], 1)

    def test_files_that_cannot_be(self):
        for text in ('[', '- a'):
            self.write('figures.yaml', text)
            self.assertIn(self.output, self.run_command(
                '--output', self.output, code=1))
        self.run_command('--output', '/nothing/figures.yaml', code=1)

    def test_runs_that_differ_are_told_and_not_kept(self):
        text = self.run_command('--spread', '1e-9', '--output', self.output,
                                code=1)
        self.assertIn('FLOPS', text)
        self.assertIn('the last runs differ by', text)
        self.assertFalse(os.path.exists(self.output))

    def test_report_needs_credentials(self):
        self.assertIn('neither [preemption_benchmark]auth_type nor '
                      '[preemption]auth_type is set',
                      self.run_command('--report', code=1))

    def make_api(self):
        """A server that lists its versions."""
        site = base.Site()
        site.answers['GET', '/'] = lambda request: {'versions': [{
            'id': 'v1.0', 'status': 'CURRENT', 'min_version': '1.0',
            'max_version': '1.2', 'links': [
                {'rel': 'self', 'href': f'{request.host_url}/v1/'}]}]}
        return site

    def test_report_has_credentials_of_its_own(self):
        own = ('[preemption_benchmark]\nauth_type = admin_token\n'
               'endpoint = http://127.0.0.1:1\ntoken = few\n')
        for more, token in (('', 'all'), (own, 'few')):
            site = self.make_api()
            url = self.serve(site)
            self.configure_watts('[preemption]\nauth_type = admin_token\n'
                                 'endpoint = http://127.0.0.1:1\n'
                                 f'token = all\n{more}')
            site.answers['PUT', '/v1/energy/hosts/node1/figures'] = {
                'figures': {}}
            self.run_command('--report', '--endpoint', url)
            self.assertEqual(token,
                             site.requests[-1].headers['X-Auth-Token'])

    def test_report(self):
        site = self.make_api()
        url = self.serve(site)
        self.configure_watts('[preemption]\nauth_type = admin_token\n'
                             'endpoint = http://127.0.0.1:1\ntoken = x\n')
        request = 'PUT', '/v1/energy/hosts/node1/figures'
        site.answers[request] = {'figures': {}}
        figures = json.loads(self.run_command(
            '--json', '--report', '--endpoint', url))
        self.assertEqual(
            {'figures': {name: figures[name] for name in (
                'flops', 'watts', 'idle_watts', 'source')}},
            site.requests[-1].json)
        site.answers[request] = 403, b''
        self.assertIn('403', self.run_command(
            '--report', '--endpoint', url, code=1))

    def test_mistakes(self):
        self.assertIn('Failed to find some config files',
                      self.run_command('--config-file', '/nothing', code=1))
        self.configure('[energy]\nsources = sundial\n')
        self.assertIn("names 'sundial'", self.run_command(code=1))
        for arguments in (['--spread', '0'], ['--run-s', 'nan'],
                          ['--idle-s', '-1'], ['--size', '0']):
            self.assertRaises(SystemExit, self.run_command, *arguments)

    def test_hpl(self):
        (self.directory / 'HPL.out').write_text(HPL_OUTPUT)
        text = self.run_command('--hpl', 'cat HPL.out', '--hpl-directory',
                                str(self.directory), '--verbose')
        # Three runs, and the result.
        self.assertEqual(4, text.count('63.15 GFLOPS'))
        self.assertIn('HPL', text)


class TestReport(test_preemption_commands.ClientTestCase):
    """Sends figures to the real API over a socket."""

    def test_figures_arrive(self):
        self.inventory.add('node1')
        path = self.directory / 'nova.conf'
        (self.directory / 'watts.yaml').write_text('node1: 200')
        path.write_text(f"""
[energy]
sources = static
static_file = {self.directory}/watts.yaml
[preemption]
auth_type = admin_token
endpoint = http://127.0.0.1:1
token = admin:p
""")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(0, cmd_benchmark.main([
                '--config-file', str(path), '--host', 'node1', '--size', '32',
                '--run-s', '0.01', '--spread', '1000', '--idle-s', '0',
                '--interval-s', '0.01', '--settle-s', '0', '--json',
                '--report', '--endpoint', self.url]))
        measured = json.loads(out.getvalue())
        host, = self.json('energy', 'hosts', '--long', token='admin:p')
        self.assertEqual(
            ('node1', measured['flops'], 200, 200, 'BLAS dgemm'),
            tuple(host[name] for name in (
                'Name', 'FLOPS', 'Watts', 'Idle Watts', 'Source')))
