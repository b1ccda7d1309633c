# SPDX-License-Identifier: Apache-2.0
"""Runs the selected tests on one manager, with stestr."""

import collections
import contextlib
import dataclasses
import functools
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import subunit
import testtools

SUITE = pathlib.Path(__file__).parent / 'suite'

# How much of the log is shown if stestr fails.
LOG_BYTES = 10000

OK = 'ok'
FAILED = 'failed'
SKIPPED = 'skipped'

_PROGRESS = re.compile(rb'\{\d+\} nova\.tests\.')
_STATUS = {'success': OK, 'xfail': OK, 'skip': SKIPPED}


class RunError(Exception):
    """The tests could not be run at all."""


@dataclasses.dataclass
class Results:
    """Outcomes of tests, and counts of calls of our manager."""

    status: dict
    details: dict = dataclasses.field(default_factory=dict)
    counts: dict = dataclasses.field(default_factory=dict)


class Stestr:
    """Runs stestr in one directory, where it stores durations of tests.

    :param directory: an empty one
    :param names: modules, classes or tests
    :param test_timeout_s: of each test, which fails then
    :param run_timeout_s: of each run, which is killed then
    """

    def __init__(self, directory, names, workers, test_timeout_s,
                 run_timeout_s):
        self._directory = pathlib.Path(directory)
        self._names = names
        self._workers = workers
        self._test_timeout_s = test_timeout_s
        self._run_timeout_s = run_timeout_s
        self._call('init')

    def run(self, manager, only=None):
        """Run the tests on this manager, 'stock' or 'ours'.

        :param only: names of tests, none for all
        """
        names = only or self._names
        for path in self._directory.glob('counts-*.json'):
            path.unlink()
        expected = self._list(manager, names)
        print(f'{len(expected)} tests with {manager}:')
        self._call('run', '--concurrency', str(self._workers),
                   manager=manager, names=names, may_fail=True,
                   on_line=_show)
        results = read(self._call('last', '--subunit', may_fail=True))
        for name in expected:
            # The process of the test died.
            results.status.setdefault(name, FAILED)
        results.counts = self._counts()
        return results

    def _list(self, manager, names):
        listed = self._call('list', manager=manager, names=names)
        return [line for line in listed.decode().splitlines()
                if line.startswith('nova.tests.')]

    def _counts(self):
        counts = collections.Counter()
        for path in self._directory.glob('counts-*.json'):
            counts.update(json.loads(path.read_text(encoding='utf-8')))
        return dict(counts)

    def _call(self, command, *arguments, manager='stock', names=(),
              may_fail=False, on_line=None):
        """Call stestr and return what it printed.

        :param may_fail: whether exit status 1, of failed tests, is expected
        :param on_line: called with each line at once
        """
        # Nova logs to stderr in tests that do not capture it: a lot.
        log = self._directory / 'stderr'
        lines = []
        with log.open('wb') as stderr:
            process = subprocess.Popen(
                [sys.executable, '-m', 'stestr', '--test-path', SUITE,
                 '--top-dir', SUITE, command, *arguments],
                cwd=self._directory, env=self._environment(manager, names),
                stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)
            alarm = threading.Timer(self._run_timeout_s, _end, [process])
            alarm.start()
            try:
                for line in process.stdout:
                    lines.append(line)
                    if on_line is not None:
                        on_line(line)
                process.wait()
            finally:
                alarm.cancel()
                _end(process)
        output = b''.join(lines)
        if process.returncode not in ((0, 1) if may_fail else (0,)):
            text = (output + log.read_bytes())[-LOG_BYTES:]
            raise RunError(f'{text.decode(errors="replace")}\n'
                           f'"stestr {command}" has failed with '
                           f'{process.returncode}.')
        return output

    def _environment(self, manager, names):
        environment = {
            # As the scheduler of Nova 34 runs; its tests would use eventlet.
            'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'true',
            'OS_STDOUT_CAPTURE': '1',
            'OS_STDERR_CAPTURE': '1',
            'LC_ALL': 'C.UTF-8',
            **os.environ,
            'OS_TEST_TIMEOUT': str(self._test_timeout_s),
            'PYTHONDONTWRITEBYTECODE': '1',
            'TMPDIR': str(self._directory),
            'NOVA_TESTS_MANAGER': manager,
            'NOVA_TESTS_NAMES': ' '.join(names),
            'NOVA_TESTS_RESULTS': str(self._directory),
        }
        # NOTE: only this module and Nova's tests set options.
        for name in list(environment):
            if name.startswith(('OS_PREEMPTION', 'OS_DEFAULT__')):
                del environment[name]
        return environment


def _show(line):
    """Show a line with the outcome of a test, and no other."""
    if _PROGRESS.match(line):
        print(line.decode(errors='replace'), end='', flush=True)


def _end(process):
    """Kill stestr and its children, which are a session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def read(stream):
    """Return the Results in a subunit stream."""
    results = Results({})
    result = testtools.StreamToDict(functools.partial(_add, results))
    result.startTestRun()
    subunit.ByteStreamToStreamResult(
        io.BytesIO(stream), non_subunit_name='output').run(result)
    result.stopTestRun()
    return results


def _add(results, test):
    if test['status'] == 'exists' or not test['id'].startswith('nova.tests.'):
        return
    status = _STATUS.get(test['status'], FAILED)
    results.status[test['id']] = status
    if status == FAILED:
        results.details[test['id']] = '\n'.join(
            content.as_text() for name, content in test['details'].items()
            if name.startswith('traceback'))
