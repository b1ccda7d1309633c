# SPDX-License-Identifier: Apache-2.0
"""Run Nova's own tests on Nova's scheduler manager and on ours, and compare.

Fails if any test is worse with our manager, or if nothing was tested.
"""

import argparse
import collections
import json
import pathlib
import signal
import sys
import tempfile

from nova_tests import comparison
from nova_tests import runs
from nova_tests import selection

# How often a test that is worse with ours is repeated; it counts if it is
# worse again. Some of Nova's tests wait for seconds only, which fails on a
# busy machine with either manager.
RETRIES = 3


def main():
    args = _parse()
    # So that child processes are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    names = args.names or (
        selection.QUICK if args.quick else selection.FULL)
    with tempfile.TemporaryDirectory(prefix='nova-tests-') as directory:
        try:
            stestr = runs.Stestr(directory, names, args.workers,
                                 args.test_timeout, args.run_timeout)
            results = _run(stestr, args)
            return _report(stestr, results)
        except runs.RunError as exc:
            print(exc, file=sys.stderr)
            return 2


def _parse():
    parser = argparse.ArgumentParser(
        prog='nova-tests.sh', description=__doc__.partition('\n')[0])
    parser.add_argument('names', nargs='*', metavar='NAME',
                        help='modules, classes or tests to run instead of '
                             'the selection')
    parser.add_argument('--quick', action='store_true',
                        help='run a smaller selection')
    parser.add_argument('--manager', choices=('both', 'stock', 'ours'),
                        default='both',
                        help="Nova's manager, ours or both (both)")
    parser.add_argument('--workers', type=int, default=2,
                        help='number of processes (2)')
    parser.add_argument('--test-timeout', type=int, default=300,
                        metavar='SECONDS', help='limit of each test (300)')
    parser.add_argument('--run-timeout', type=int, default=7200,
                        metavar='SECONDS',
                        help='limit of all tests with a manager (7200)')
    parser.add_argument('--stock-results', type=pathlib.Path, metavar='FILE',
                        help="compare with the results of Nova's manager in "
                             'this file; create it if it does not exist')
    return parser.parse_args()


def _run(stestr, args):
    """Return {manager: runs.Results}."""
    results = {}
    if args.manager != 'ours':
        results['stock'] = _run_stock(stestr, args.stock_results)
    if args.manager != 'stock':
        results['ours'] = stestr.run('ours')
    return results


def _run_stock(stestr, path):
    if path and path.exists():
        return runs.Results(json.loads(path.read_text(encoding='utf-8')))
    results = stestr.run('stock')
    if path:
        path.write_text(json.dumps(results.status, indent=1, sort_keys=True),
                        encoding='utf-8')
    return results


def _report(stestr, results):
    """Print the outcome; return the exit status."""
    worse = []
    if len(results) == 2:
        worse = _worse(stestr, results['stock'], results['ours'])
    print()
    for line in comparison.table(results):
        print(line)
    if len(results) == 2:
        _print_names('Failed with both',
                     comparison.failed(*results.values()))
        _print_names('Better with ours', comparison.better(
            results['stock'], results['ours']))
        _print_names('Worse with ours', worse)
    else:
        worse = comparison.failed(*results.values())
        _print_names('Failed', worse)
    sound = [_was_tested(manager, result)
             for manager, result in results.items()]
    return int(bool(worse) or not all(sound))


def _worse(stestr, stock, ours):
    """Return the tests that are worse with ours repeatedly."""
    suspects = comparison.worse(stock, ours)
    for name in suspects:
        print(f'\n{name} with ours:\n{ours.details.get(name, "")}')
    worse = []
    for _ in range(RETRIES):
        if not suspects:
            break
        again = stestr.run('ours', only=suspects)
        worse += [name for name in suspects
                  if again.status.get(name) != stock.status[name]]
        suspects = [name for name in suspects if name not in worse]
    _print_names('Worse with ours once, but never when run again', suspects)
    for name in suspects:
        ours.status[name] = stock.status[name]
    return sorted(worse)


def _was_tested(manager, results):
    """Return whether tests passed, and our manager was really used."""
    if runs.OK not in results.status.values():
        print(f'\nNo test has passed with {manager}.')
        return False
    if manager == 'stock':
        return True
    counts = collections.Counter(results.counts)
    print(f'\nOur manager was started {counts["started"]} times, '
          f'{counts["active"]} times ready to preempt, and got '
          f'{counts["requests"]} requests, {counts["active_requests"]} of '
          'them when ready.')
    if any(name.startswith('nova.tests.functional.')
           for name in results.status):
        ready = counts['active'] and counts['active'] == counts['started']
    else:
        # Nova's unit tests make a manager, but do not start it.
        ready = counts['requests']
    if not ready:
        print('Our manager was not used as intended.')
    return bool(ready)


def _print_names(title, names):
    if names:
        print(f'\n{title}:')
        for name in names:
            print(f'  {name}')


if __name__ == '__main__':
    sys.exit(main())
