# SPDX-License-Identifier: Apache-2.0

"""Run parts of "make test" one after the other, and print their durations.

Usage: run_parts.py RESULTS PART...

RESULTS is the directory of test results. All parts are run even if one fails.
Exits with 1 if any did.
"""

import os
import subprocess
import sys
import time

import count_tests

#: The parts whose tests are counted.
TESTS = ('unit', 'functional', 'slow')


def run(part):
    """Run a part; return (failed, seconds, seconds of processors)."""
    began, used = time.monotonic(), _used()
    # NOTE: options of this make are passed on by MAKEFLAGS.
    status = subprocess.run([os.environ.get('MAKE', 'make'), part],
                            check=False).returncode
    return status != 0, time.monotonic() - began, _used() - used


def _used():
    times = os.times()
    return times.children_user + times.children_system


def main(results, *parts):
    """Run the parts, print the outcome and return the exit status."""
    found = {part: run(part) for part in parts}
    total = [sum(numbers) for numbers in zip(*found.values(), strict=True)]
    print(f'{"":12} {"wall":>8} {"processor":>12}')
    for part, (failed, wall_s, used_s) in {**found, 'all': total}.items():
        print(f'{part:12} {wall_s:6.0f} s {used_s:10.0f} s'
              f'{"  failed" if failed else ""}')
    uncounted = count_tests.main(
        [os.path.join(results, part) for part in parts if part in TESTS])
    return 1 if uncounted or total[0] else 0


if __name__ == '__main__':
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main(*sys.argv[1:]))
