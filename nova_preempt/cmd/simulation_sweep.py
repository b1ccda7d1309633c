# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""nova-preempt-simulate sweep: many seeds, policies and traces at once."""

import argparse
import dataclasses
import itertools
import json
import os
import sys
import time

from nova_preempt.cmd import simulation_files
from nova_preempt.cmd import simulation_kept
from nova_preempt.cmd import simulation_policy
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import sweep
from nova_preempt.simulator import tables

PROG = 'nova-preempt-simulate'
_MOST_SEEDS = 100_000


def add_parser(commands, add_trace, seconds):
    """Add the command.

    :param add_trace: adds what is about traces
    :param seconds: reads a number of them
    """
    parser = commands.add_parser(
        'sweep', help='simulate many seeds, policies and traces at once',
        description='Each trace is one by itself here. Printed are the means '
                    'of all seeds, side by side, or with --json each run as '
                    'soon as it is ready.',
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--cloud', required=True, metavar='FILE',
                        help='hosts, flavors and classes, in YAML')
    add_trace(parser)
    parser.add_argument('--policy', metavar='FILE', action='append',
                        default=argparse.SUPPRESS,
                        help='a file such as nova.conf; may be given more '
                             'than once. Without it, the defaults')
    parser.add_argument('--seeds', type=_seeds, default='0-9', metavar='A-B',
                        help='these and all between them, or a single one')
    parser.add_argument('--until-s', type=seconds, metavar='S',
                        default=argparse.SUPPRESS,
                        help='when each run ends; by default with its last '
                             'event')
    parser.add_argument('--json', action='store_true',
                        help='print a JSON line for each run')
    parser.add_argument('--keep', metavar='DIR', default=argparse.SUPPRESS,
                        help='where each run is kept once it has finished; '
                             'the same command goes on with those that are '
                             'missing')
    where = parser.add_mutually_exclusive_group()
    where.add_argument('--jobs', type=_count, metavar='N',
                       default=os.process_cpu_count() if hasattr(
                           os, 'process_cpu_count') else os.cpu_count() or 1,
                       help='so many processes of this machine')
    where.add_argument('--dask', metavar='ADDRESS', default=argparse.SUPPRESS,
                       help='of the scheduler of a Dask cluster, whose '
                            'workers find the traces where we do')


def _seeds(text):
    first, _, last = text.partition('-')
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text} is neither a number nor two, such as 0-9') from None
    if not 0 < len(found) <= _MOST_SEEDS:
        raise argparse.ArgumentTypeError(
            f'{text} are {len(found)}, it must be 1 to {_MOST_SEEDS}')
    return found


def _count(text):
    found = int(text)
    if not 1 <= found <= 1024:
        raise argparse.ArgumentTypeError(f'{text} is not from 1 to 1024')
    return found


def run(args, trace_format, scale):
    """Run all of them, and print what comes of it."""
    setup, workers = simulation_files.read_cloud(args.cloud)
    jobs = list(_jobs(args, setup, workers, trace_format, scale))
    runs = _kept(args, jobs, scale) if hasattr(args, 'keep') else (
        _run(args, jobs))
    found = {}
    for job, summary in runs:
        if args.json:
            print(json.dumps({**job.names, **summary}), flush=True)
        else:
            found[job.names['trace'], job.names['policy'],
                  job.names['seed']] = summary
    if not args.json:
        print('\n'.join(_table(args, found)))


def _run(args, jobs):
    """Yield (job, summary) as runs are ready."""
    return _followed(
        sweep.on_dask(jobs, args.dask) if hasattr(args, 'dask')
        else sweep.in_processes(jobs, args.jobs), len(jobs))


def _kept(args, jobs, scale):
    """Yield the same: of those that have finished before at once."""
    files = {path: simulation_kept.digest(path)
             for path in {*args.trace, *getattr(args, 'policy', ())}}
    kept = simulation_kept.Kept(args.keep, {
        'cloud': simulation_kept.digest(args.cloud), 'sort': args.sort,
        'scale': dataclasses.asdict(scale)})

    def described(job):
        return {'trace': files[job.names['trace']],
                'policy': files.get(job.names['policy'], ''),
                'format': job.trace_format, 'until_us': job.until_us,
                'seed': job.seed}

    left = []
    for job in jobs:
        summary = kept.get(described(job))
        if summary is None:
            left.append(job)
        else:
            yield job, summary
    print(f'{PROG}: {len(jobs) - len(left)} of {len(jobs)} runs are in '
          f'{args.keep}', file=sys.stderr)
    for job, summary in _run(args, left) if left else ():
        kept.put(described(job), summary)
        yield job, summary


def _jobs(args, setup, workers, trace_format, scale):
    until_us = None
    if hasattr(args, 'until_s'):
        until_us = round(args.until_s * SECOND)
    policies = {}
    for name in getattr(args, 'policy', [None]):
        options, left_out = simulation_policy.read_policy(name, workers)
        policies[name or 'defaults'] = options
        for option in left_out:
            print(f'{PROG}: {name or "defaults"}: not simulated: {option}',
                  file=sys.stderr)
    for path, policy, seed in itertools.product(
            dict.fromkeys(args.trace), policies, args.seeds):
        # A worker may be in another directory.
        yield sweep.Job(
            {'trace': path, 'policy': policy, 'seed': seed}, setup,
            policies[policy], trace_format, (os.path.abspath(path),), scale,
            seed, args.sort, until_us)


def _followed(runs, count, clock=time.monotonic):
    """Yield runs, and show on a terminal how far it is."""
    began = clock()
    for number, item in enumerate(runs, 1):
        yield item
        if sys.stderr.isatty():
            took_s = clock() - began
            left_s = took_s / number * (count - number)
            sys.stderr.write(f'\r{number} of {count} runs, '
                             f'{3600 * number / max(took_s, 1e-6):.0f} an '
                             f'hour, {left_s:.0f} s left'.ljust(78))
            if number == count:
                sys.stderr.write('\n')
            sys.stderr.flush()


def _table(args, found):
    """The means over all seeds, a column for each trace and policy."""
    columns = {}
    # In order of the seeds, not of who was ready first.
    for (trace, policy, _), summary in sorted(found.items()):
        columns.setdefault((trace, policy), []).append(summary)
    several = len(set(args.trace)) > 1
    titles = [f'{trace}: {policy}' if several else policy
              for trace, policy in columns]
    yield f'means of {len(args.seeds)} seeds'
    yield from tables.table(
        titles, [sweep.mean(each) for each in columns.values()])
