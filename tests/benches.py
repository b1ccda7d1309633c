# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks in their smallest size, so that none of them rots.

Their figures are for people to look at: no test depends on how fast they are.
"""

import pathlib
import re
import subprocess
import sys

BENCH = pathlib.Path(__file__).parents[1] / 'bench'

# Each in its smallest size.
PLAIN = (
    'backlog --hosts 4 --requests 10 --starts 2',
    'batch --hosts 8 --requests 5 --repetitions 1',
    'classes --servers 10',
    'decisions --hosts 10 --requests 10',
    'duel --seeds 1',
    'orders --requests 10',
    'reservation_filter --hosts 4 --reservations 4 --repetitions 1',
    'reservations --hosts 4 --reservations 10 --repetitions 1',
    'simulator --hosts 10 --hours 0.1',
    'victims --cases 1',
)
WITH_CLOUD = (
    'energy --hosts 2 --repetitions 1',
    'notice --waiting 1 --notice 2 --repetitions 1',
    'schedule --hosts 2 --repetitions 1',
    'servers --servers 5',
)

# Modules that benchmarks share.
_SHARED = frozenset((
    'copies', 'duel_policies', 'duel_score', 'duel_traces', 'schedulers'))

# All in one process, for to import Nova takes longest.
_RUN = """
import runpy, sys, traceback
for line in sys.argv[2:]:
    name, *arguments = line.split()
    sys.argv = [name, *arguments]
    print('\\n###', name)
    try:
        runpy.run_path(f'{sys.argv[0]}.py', run_name='__main__')
    except SystemExit as exc:
        if exc.code:
            print('\\nexit status:', exc.code)
    except Exception:
        traceback.print_exc(file=sys.stdout)
"""


def names(lines):
    """Return the names of the benchmarks in these lines."""
    return {line.split()[0] for line in lines}


def all_names():
    """Return the names of all benchmarks."""
    return {path.stem for path in BENCH.glob('*.py')} - _SHARED


def fault(printed):
    """Return why a benchmark failed, '' if it did not.

    That it missed a target, and says so, is no failure.

    :param printed: a value of what run() returns
    """
    if 'Traceback' in printed:
        return printed
    for status in re.findall(r'^exit status: (.*)$', printed, re.M):
        if status not in ('1', 'True') or 'MISSED' not in printed:
            return f'exit status: {status}'
    return ''


def run(*lines):
    """{name: what it has printed} of benchmarks, each with its arguments."""
    done = subprocess.run(
        [sys.executable, '-c', _RUN, BENCH, *lines], check=False, text=True,
        cwd=BENCH, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=900)
    found = {}
    for part in done.stdout.split('\n### ')[1:]:
        name, _, printed = part.partition('\n')
        found[name] = found.get(name, '') + printed
    return found
