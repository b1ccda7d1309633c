#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds a seed for each fault of tests/exploration/mended_faults.py.

It reintroduces the fault and explores seeds, the known one first, until one
fails that does not fail without the fault. It writes the seeds and the
failures into mended_faults.py, and the table into CONTRIBUTING.rst.
"""

import argparse
import dataclasses
import re

import explore

FAULTS = explore.TOP / 'tests' / 'exploration' / 'mended_faults.py'
TABLE = explore.TOP / 'CONTRIBUTING.rst'


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--seeds', default='1-1000',
                        help='seeds to try: FIRST-LAST, or several '
                             'with commas; default: 1-1000')
    parser.add_argument('--faults', default='',
                        help='names of faults, with commas; default: all')
    parser.add_argument('--known', action='store_true',
                        help='only faults with a known seed')
    parser.add_argument('--check', action='store_true',
                        help='write nothing')
    return parser


class Finder:
    """Finds a seed for each fault, and records it.

    :ivar faults: the module tests.exploration.mended_faults
    """

    def __init__(self):
        parser = explore.make_parser()
        self._explorer = explore.Explorer(parser.parse_args([]))
        self.faults = self._explorer.faults
        self._explorer.configure(parser.parse_args(self.faults.ARGUMENTS))
        self._fails = {}          # (fault, seed): its Failure, or None

    def _explore(self, name, seed):
        if (name, seed) not in self._fails:
            self._fails[name, seed] = self._explorer.explore(seed, name)
        return self._fails[name, seed]

    def find(self, name, seeds):
        """Return the Failure of a fault, None if no seed finds it."""
        known = self.faults.ALL[name].seed
        for seed in ([] if known is None else [known]) + seeds:
            failure = self._explore(name, seed)
            if failure is not None and self._explore('', seed) is None:
                return failure
        return None

    def note(self, name, failure):
        """Record the seed that finds a fault, in the module and the table."""
        self.faults.ALL[name] = dataclasses.replace(
            self.faults.ALL[name], seed=failure.seed, finds=failure.kind)
        text = re.sub(
            rf'@fault\([^)]*\)\ndef {name}\(',
            f"@fault({failure.seed}, '{failure.kind}')\ndef {name}(",
            FAULTS.read_text())
        FAULTS.write_text(text)
        before, begin, rest = TABLE.read_text().partition(
            '.. mended faults\n\n')
        _, end, after = rest.partition('\n.. end of mended faults')
        TABLE.write_text(before + begin + self.faults.table() + end + after)


def main():
    args = make_parser().parse_args()
    explore.fix_hashes(__file__)
    finder = Finder()
    seeds = explore.list_seeds(argparse.Namespace(
        seeds=args.seeds, done=None))
    for name, fault in list(finder.faults.ALL.items()):
        if (args.faults and name not in args.faults.split(',')) or (
                args.known and fault.seed is None):
            continue
        failure = finder.find(name, seeds)
        if failure is None:
            print(f'{name}: no seed', flush=True)
        else:
            print(f'{name}: {failure.seed} {failure.kind}', flush=True)
            if not args.check:
                finder.note(name, failure)


if __name__ == '__main__':
    main()
