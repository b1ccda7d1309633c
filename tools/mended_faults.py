#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds a seed for each mended fault of tests/exploration.

It reintroduces the fault and explores seeds, the known one first, until one
fails that does not fail without the fault. It writes the seeds and the
failures into their module, and the table into CONTRIBUTING.rst.
"""

import argparse
import dataclasses
import inspect
import pathlib
import re

import explore

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
        self._parser = parser
        self._fails = {}          # (features, seed, fault): Failure or None

    def _explore(self, name, seed, fault=''):
        """Explore a seed as for a fault, and perhaps with that fault."""
        features = self.faults.ALL[name].features
        key = features, seed, fault
        if key not in self._fails:
            self._explorer.configure(self._parser.parse_args(
                self.faults.ALL[name].arguments))
            self._fails[key] = self._explorer.explore(seed, fault)
        return self._fails[key]

    def find(self, name, seeds):
        """Return the Failure of a fault, None if no seed finds it."""
        known = self.faults.ALL[name].seed
        for seed in ([] if known is None else [known]) + seeds:
            failure = self._explore(name, seed, name)
            if failure is not None and self._explore(name, seed) is None:
                return failure
        return None

    def note(self, name, failure):
        """Record the seed that finds a fault, in the module and the table."""
        self.faults.ALL[name] = dataclasses.replace(
            self.faults.ALL[name], seed=failure.seed, finds=failure.kind)
        fault = self.faults.ALL[name]
        path = pathlib.Path(inspect.getfile(fault.patch))
        given = f"{failure.seed}, '{failure.kind}'"
        if fault.features:
            given += f", '{fault.features}'"
        path.write_text(re.sub(
            rf'@fault\([^)]*\)\ndef {name}\(',
            f'@fault({given})\ndef {name}(', path.read_text()))
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
