# SPDX-License-Identifier: Apache-2.0
"""Measures a host's speed and draw at full load."""

import dataclasses
import importlib
import os
import re
import statistics
import subprocess
import sys
import threading

from nova_preempt.power import power_readings

# How many runs in a row have to agree.
AGREEING_RUNS = 3
# Environment of the processes on each core; BLAS reads it when it is loaded.
_ONE_THREAD = {f'{name}_NUM_THREADS': '1'
               for name in ('OPENBLAS', 'MKL', 'BLIS', 'OMP')}
# A line of HPL: test, N, NB, P, Q, seconds, Gflops.
_HPL_RESULT = re.compile(
    r'^W\S+(?:\s+\d+){4}\s+[\d.]+\s+([\d.]+(?:[eE][-+]?\d+)?)\s*$', re.M)


class BenchmarkError(Exception):
    """The host cannot be measured; the message says why."""


@dataclasses.dataclass(frozen=True)
class BenchmarkResult:
    """Result of a measurement.

    :ivar flops: double-precision operations a second, on all cores together
    :ivar spread: of the last runs, relative to flops
    :ivar watts: at full load, None without readings
    :ivar idle_watts: before the load, None without readings
    :ivar source: the name of the workload
    """

    host: str
    flops: float
    spread: float
    runs: int
    watts: float | None
    idle_watts: float | None
    source: str

    @property
    def flops_per_watt(self):
        return self.flops / self.watts if self.watts else None


class Blas:
    """Workload: products of matrices on each core, by numpy.

    It has to be closed, which ends its processes.

    :param size: of the matrices; each core uses three of size**2 * 8 bytes
    :param run_s: how long each run takes
    :raises BenchmarkError: numpy cannot be imported
    """

    name = 'BLAS dgemm'

    def __init__(self, size, run_s, cores=None):
        try:
            importlib.import_module('numpy')
        except ImportError as exc:
            # NOTE: else each process would end with a traceback.
            raise BenchmarkError(
                f'numpy cannot be imported ({exc}); it comes with: pip '
                "install 'nova-preempt[benchmark]'") from None
        self._size = size
        self._run_s = run_s
        cores = sorted(os.sched_getaffinity(0) if cores is None else cores)
        self._workers = [subprocess.Popen(
            [sys.executable, '-m', 'nova_preempt.power.dgemm', str(core)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **_ONE_THREAD}) for core in cores]

    def run(self):
        """Load all cores for run_s; return FLOPS.

        :raises BenchmarkError: a process ended
        """
        try:
            for worker in self._workers:
                worker.stdin.write(f'{self._size} {self._run_s}\n')
                worker.stdin.flush()
            answers = [worker.stdout.readline().split()
                       for worker in self._workers]
            return sum(2 * self._size ** 3 * int(products) / float(seconds)
                       for products, seconds in answers)
        except (OSError, ValueError) as exc:
            raise BenchmarkError(
                'a process of the benchmark ended early; the host may be out '
                'of memory') from exc

    def close(self):
        for worker in self._workers:
            worker.kill()
            worker.communicate()


class Hpl:
    """Workload: High-Performance Linpack, built and tuned by the operator.

    :param command: its arguments, such as mpirun's
    :param directory: where its HPL.dat is
    """

    name = 'HPL'

    def __init__(self, command, directory):
        self._command = command
        self._directory = directory

    def run(self):
        """Run it once; return the FLOPS of its best test.

        :raises BenchmarkError: it failed
        """
        try:
            done = subprocess.run(
                self._command, cwd=self._directory, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors='replace', check=False)
        except OSError as exc:
            raise BenchmarkError(f'{self._command[0]}: {exc}') from exc
        results = [float(value) for value in _HPL_RESULT.findall(done.stdout)]
        if done.returncode or not results or 'FAILED' in done.stdout:
            raise BenchmarkError(
                f'{self._command[0]} exited with status {done.returncode} '
                f'and {len(results)} results: {done.stdout[-1000:]}')
        return max(results) * 1e9

    def close(self):
        """Do nothing, as no process is left running."""


class PowerMeter:
    """Reads the watts of a host in a thread, within a with block.

    Only readings dated within the block count, each once.

    :param source: a nova_preempt.power.power_readings.PowerReader
    :param settle_s: readings of the first settle_s seconds do not count
    """

    def __init__(self, source, host, interval_s, settle_s=0,
                 clock=power_readings.utcnow):
        self._source = source
        self._host = host
        self._interval_s = interval_s
        self._settle_s = settle_s
        self._clock = clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._begin = None
        self._watts = {}

    def __enter__(self):
        self._begin = self._clock()
        self._thread.start()
        return self

    def __exit__(self, *exc_info):
        self._over.set()
        self._thread.join()

    @property
    def watts(self):
        """The mean of the readings, None without any."""
        found = list(self._watts.values())
        return statistics.fmean(found) if found else None

    def _read(self):
        while True:
            reading = self._source.read([self._host]).get(self._host)
            if reading is not None and self._settle_s <= (
                    reading.at - self._begin).total_seconds():
                self._watts[reading.at] = reading.watts
            if self._over.wait(self._interval_s):
                return


def measure_flops(run, spread, max_runs, is_enough=lambda: True,
                  tell=lambda flops: None):
    """Run until the last runs agree; return (median, spread, number of runs).

    The spread is that of the last AGREEING_RUNS, from least to most, relative
    to their median. It exceeds the argument if max_runs were not enough.

    :param run: returns FLOPS
    :param is_enough: whether it may end where the runs agree
    :param tell: called with the FLOPS of each run
    """
    found = []
    while True:
        found.append(run())
        tell(found[-1])
        last = found[-AGREEING_RUNS:]
        median = statistics.median(last)
        reached = (max(last) - min(last)) / median
        if len(found) >= max_runs or (
                len(found) >= AGREEING_RUNS and reached <= spread
                and is_enough()):
            return median, reached, len(found)


def measure(host, workload, source, idle_s, interval_s, settle_s, spread,
            max_runs, tell=lambda flops: None):
    """Measure a host and return its BenchmarkResult.

    :param workload: Blas or Hpl
    :param source: a nova_preempt.power.power_readings.PowerReader, None
        without a source
    :param idle_s: how long the idle host is read before
    :param interval_s: between two readings
    :param settle_s: how long a meter takes to show the load
    :param tell: called with the FLOPS of each run
    """
    if source is None:
        flops, reached, runs = measure_flops(
            workload.run, spread, max_runs, tell=tell)
        return BenchmarkResult(host, flops, reached, runs, None, None,
                               workload.name)
    with PowerMeter(source, host, interval_s) as idle:
        threading.Event().wait(idle_s)
    with PowerMeter(source, host, interval_s, settle_s) as load:
        found = measure_flops(workload.run, spread, max_runs,
                              lambda: load.watts is not None, tell)
    return BenchmarkResult(host, *found, load.watts, idle.watts, workload.name)
