#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Explores orders of events: see tests/exploration.

Each seed is one exploration. For each failure it prints the seed, the error,
the operations that suffice to cause it, and the command that repeats it.
"""

import argparse
import concurrent.futures
import gc
import hashlib
import os
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).parents[1]


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--seeds', default='1-50',
                        help='seeds to explore: FIRST-LAST, or several '
                             'with commas; default: 1-50')
    parser.add_argument('--operations', type=int, default=60,
                        help='number of operations of users and operators '
                             'in each exploration; default: 60')
    parser.add_argument('--evictions', action='store_true',
                        help='draw operations that lead to many evictions '
                             'for every seed, not only for some')
    parser.add_argument('--features',
                        help='features to enable beside preemption, with '
                             'commas: reservations, power, backlog, '
                             'recommendations, interruptions, delays, '
                             'returns; default: drawn from the seed')
    parser.add_argument('--hosts', type=int, default=4,
                        help='number of hosts of the cloud; default: 4')
    parser.add_argument('--rate', type=float,
                        help='share of calls that fail, from 0 to 1; '
                             'default: drawn from the seed')
    parser.add_argument('--only',
                        help='perform only the operations with these '
                             'numbers, with commas')
    parser.add_argument('--fault', default='',
                        help='reintroduce this fault of '
                             'tests/exploration/mended_faults.py')
    parser.add_argument('--trace', action='store_true',
                        help='print every event')
    parser.add_argument('--digest', action='store_true',
                        help='print a digest of the trace of each seed')
    parser.add_argument('--no-failures', action='store_true',
                        help='let no call fail and no process crash by '
                             'itself')
    parser.add_argument('--no-shortening', action='store_true',
                        help='do not search for the operations that suffice '
                             'to cause a failure')
    parser.add_argument('--first', action='store_true',
                        help='stop at the first failure')
    parser.add_argument('--processes', type=int, default=1,
                        help='number of processes; default: 1')
    parser.add_argument('--done',
                        help='skip the seeds in this file, and append the '
                             'seeds that have not failed')
    return parser


def list_seeds(args):
    """Return the seeds to explore, without those in the file --done."""
    found = []
    for part in args.seeds.split(','):
        first, _, last = part.partition('-')
        found.extend(range(int(first), int(last or first) + 1))
    if args.done and os.path.exists(args.done):
        done = {int(line) for line in pathlib.Path(
            args.done).read_text().split()}
        found = [seed for seed in found if seed not in done]
    return found


class Explorer:
    """Explores seeds in this process, in virtual time."""

    def __init__(self, args):
        # The clock must be replaced before modules are imported that have
        # it as a default argument.
        from nova_preempt.cmd import native_threads  # noqa: F401
        from tests.exploration import preparation
        preparation.prepare()
        from tests.exploration import explore
        from tests.exploration import features
        from tests.exploration import mended_faults
        from tests.exploration import world
        self._world = world
        self._explore = explore
        self._features = features
        self.faults = mended_faults
        # Each exploration collects its garbage at its end.
        gc.freeze()
        gc.disable()
        self.configure(args)

    def configure(self, args):
        """Use these arguments for the following explorations."""
        self._world.World.HOSTS, self._world.World.RATE = (
            args.hosts, args.rate)
        self._args = args

    def run(self, seeds):
        """Explore the seeds; return whether any has failed."""
        began, failures, done = time.process_time(), 0, 0
        for done, seed in enumerate(seeds, 1):
            has_failed = self._run_one(seed)
            failures += has_failed
            # A seed that has failed is explored again the next time.
            if self._args.done and not has_failed:
                with open(self._args.done, 'a') as file:
                    file.write(f'{seed}\n')
            if failures and self._args.first:
                break
            if done % 20 == 0:
                self._tell_progress(done, len(seeds), failures, began)
        self._tell_progress(done, len(seeds), failures, began)
        return bool(failures)

    @staticmethod
    def _tell_progress(done, count, failures, began):
        took_s = time.process_time() - began
        print(f'{done} of {count} seeds, {failures} failed, '
              f'{took_s / max(1, done):.1f} s of processor each', flush=True)

    def _draw(self, seed):
        """Return the settings and the operations of a seed."""
        args = self._args
        features = (
            self._features.draw(seed) if args.features is None
            else tuple(filter(None, args.features.split(','))))
        chosen = self._features.draw_operations(
            seed, args.operations, features,
            args.evictions or bool(seed // (2 if features else 1) % 2))
        if args.only is not None:
            wanted = {int(number) for number in args.only.split(',')
                      if number}
            chosen = [each for each in chosen if each.number in wanted]
        return self._features.draw_settings(seed, features), chosen

    def explore(self, seed, fault='', trace=None):
        """Return the Failure of a seed, None if it has not failed.

        :param fault: name of a mended fault to reintroduce, '' for none
        """
        settings, chosen = self._draw(seed)
        with self.faults.put_back(fault):
            return self._explore.Exploration(
                seed, chosen, trace, faults=not self._args.no_failures,
                settings=settings).run()

    def _run_one(self, seed):
        args = self._args
        digest = hashlib.sha256()

        def trace(line):
            digest.update(line.encode())
            if args.trace:
                print(line)

        failure = self.explore(
            seed, args.fault, trace if args.trace or args.digest else None)
        if args.digest:
            print(f'seed {seed}: {digest.hexdigest()}')
        if failure is not None:
            with self.faults.put_back(args.fault):
                self._tell(failure, self._draw(seed)[0])
        return failure is not None

    def _tell(self, failure, settings):
        args = self._args
        text = failure.text.strip()
        print(f'seed {failure.seed}: {failure.kind}: '
              f'{text if args.trace else text.splitlines()[-1]}', flush=True)
        if not args.no_shortening and args.only is None:
            failure = self._explore.shorten(
                failure, faults=not args.no_failures, settings=settings)
            print(f'  {len(failure.operations)} operations are enough: '
                  f'{failure.text.strip().splitlines()[-1]}')
        numbers = ','.join(str(each.number) for each in failure.operations)
        print(f'  again: tools/explore.py --seeds {failure.seed} '
              f'--operations {args.operations} --hosts {args.hosts} '
              f'--only {numbers} --trace'
              + (f' --rate {args.rate}' if args.rate else '')
              + (' --evictions' if args.evictions else '')
              + ('' if args.features is None
                 else f' --features={args.features}')
              + (f' --fault {args.fault}' if args.fault else ''), flush=True)


def run_processes(args, seeds):
    """Explore in several processes; return 1 if any seed has failed."""
    def run(number):
        # In blocks, as odd seeds take longer than even ones.
        first, end = (len(seeds) * each // args.processes
                      for each in (number, number + 1))
        mine = ','.join(map(str, seeds[first:end]))
        # argparse uses the last value of an option.
        return subprocess.call(
            [sys.executable, '-W', 'ignore', __file__, *sys.argv[1:],
             '--processes=1', f'--seeds={mine}'])

    with concurrent.futures.ThreadPoolExecutor(args.processes) as pool:
        return max(pool.map(run, range(args.processes)))


def fix_hashes(program):
    """Start this program again with a fixed order of sets of strings.

    The order of events depends on it.
    """
    if os.environ.get('PYTHONHASHSEED') != '0':
        os.execve(sys.executable, [sys.executable, '-W', 'ignore', program,
                                   *sys.argv[1:]],
                  os.environ | {'PYTHONHASHSEED': '0'})
    sys.path.insert(0, str(TOP))


def main():
    args = make_parser().parse_args()
    seeds = list_seeds(args)
    if not seeds:
        print('no seed is left')
        return 0
    if args.processes > 1:
        return run_processes(args, seeds)
    fix_hashes(__file__)
    return Explorer(args).run(seeds)


if __name__ == '__main__':
    sys.exit(main())
