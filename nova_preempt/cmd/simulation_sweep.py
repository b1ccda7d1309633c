# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-simulate sweep: simulates many seeds, policies and traces."""

import argparse
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import sys

from nova_preempt.cmd import arguments
from nova_preempt.cmd import output_files
from nova_preempt.cmd import simulation_cloud_file
from nova_preempt.cmd import simulation_policy
from nova_preempt.pictures import progress_bar
from nova_preempt.simulator import summary_tables
from nova_preempt.simulator import sweep

PROG = 'nova-preempt-simulate'
_MOST_SEEDS = 100_000
_PACKAGE = pathlib.Path(__file__).parents[1]


def add_parser(commands, add_trace, add_until, **how):
    """Add the command.

    :param add_trace: adds the arguments of traces to a parser
    :param add_until: adds the argument of the end of a run
    :param how: further arguments of the parser
    """
    parser = commands.add_parser(
        'sweep', help='simulate many seeds, policies and traces at once',
        description='Each file is a separate trace. Prints the means over '
                    'all seeds, or with --json each run as soon as it ends.',
        **how)
    parser.add_argument('--cloud', required=True, metavar='FILE',
                        help='YAML file with hosts, flavors and classes')
    add_trace(parser)
    parser.add_argument('--policy', metavar='FILE', action='append',
                        help='configuration file; may be repeated; default: '
                             'the defaults of all options')
    parser.add_argument('--seeds', type=_seeds, default='0-9', metavar='A-B',
                        help='a range of seeds, or a single seed')
    add_until(parser, 'end of each run; default: its last event')
    parser.add_argument('--json', action='store_true',
                        help='print a JSON line for each run')
    parser.add_argument('--keep', metavar='DIR',
                        help='store finished runs in this directory; the same '
                             'command resumes with the missing runs')
    where = parser.add_mutually_exclusive_group()
    where.add_argument('--jobs', type=arguments.within(int, 1, 1024),
                       metavar='N', default=os.process_cpu_count() if hasattr(
                           os, 'process_cpu_count') else os.cpu_count() or 1,
                       help='number of processes on this machine')
    where.add_argument('--dask', metavar='ADDRESS',
                       help='address of a Dask scheduler, whose workers '
                            'have the traces at the same paths')


def _seeds(text):
    first, _, last = text.partition('-')
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text} must be a number or a range such as 0-9') from None
    if not 0 < len(found) <= _MOST_SEEDS:
        raise argparse.ArgumentTypeError(
            f'{text} has {len(found)} seeds; must be 1 to {_MOST_SEEDS}')
    return found


def warn(text):
    print(f'{PROG}: {text}', file=sys.stderr)


def read_policies(paths, workers):
    """Return [(path or "defaults", the simulator's Options)].

    Warns of options that are not simulated.

    :param paths: None stands for the defaults
    """
    found = []
    for path in paths:
        title = path or 'defaults'
        options, left_out = simulation_policy.read_policy(path, workers)
        found.append((title, options))
        for option in left_out:
            warn(f'{title}: not simulated: {option}')
    return found


def run(args, trace_format, scale):
    """Run the sweep, and print the results."""
    setup, workers = simulation_cloud_file.read_cloud(args.cloud)
    # A worker may have another working directory.
    jobs = [
        sweep.Job({'trace': path, 'policy': title, 'seed': seed}, setup,
                  options, trace_format, (os.path.abspath(path),), scale,
                  seed, bool(args.sort), args.until_us)
        for path, (title, options), seed in itertools.product(
            dict.fromkeys(args.trace),
            dict(read_policies(args.policy or [None], workers)).items(),
            args.seeds)]
    found = {}
    for job, summary in (_kept(args, jobs, scale) if args.keep
                         else _run(args, jobs)):
        if args.json:
            print(json.dumps({**job.names, **summary}), flush=True)
        else:
            found[job.names['trace'], job.names['policy'],
                  job.names['seed']] = summary
    if not args.json:
        print('\n'.join(_table(args, found)))


def _run(args, jobs):
    """Run jobs; yield (job, summary) of each when ready."""
    return progress_bar.followed(
        sweep.on_dask(jobs, args.dask) if args.dask
        else sweep.in_processes(jobs, args.jobs),
        lambda number, _, took_s: (
            number / len(jobs), f'{number} of {len(jobs)} runs'),
        not args.no_progress)


def _kept(args, jobs, scale):
    """Yield stored results, then run and store the missing jobs."""
    files = {path: digest(path)
             for path in {*args.trace, *(args.policy or ())}}
    kept = ResultStore(args.keep, {
        'cloud': digest(args.cloud), 'sort': bool(args.sort),
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
    warn(f'{len(jobs) - len(left)} of {len(jobs)} runs are in {args.keep}')
    for job, summary in _run(args, left) if left else ():
        kept.put(described(job), summary)
        yield job, summary


def _table(args, found):
    """Yield the table of means, a column for each trace and policy."""
    columns = {}
    # In order of the seeds, not of completion.
    for (trace, policy, _), summary in sorted(found.items()):
        columns.setdefault((trace, policy), []).append(summary)
    several = len(set(args.trace)) > 1
    titles = [f'{trace}: {policy}' if several else policy
              for trace, policy in columns]
    yield f'means of {len(args.seeds)} seeds'
    yield from summary_tables.table(
        titles, [sweep.mean(each) for each in columns.values()])


def digest(path):
    """Return the SHA-256 of a file.

    :raises OSError: the file cannot be read
    """
    with open(path, 'rb') as stream:
        return hashlib.file_digest(stream, 'sha256').hexdigest()


def code_digest(directory=_PACKAGE):
    """Return the SHA-256 of all code of nova_preempt."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob('*.py')):
        name = path.relative_to(directory)
        found.update(f'{name} {digest(path)}\n'.encode())
    return found.hexdigest()


class ResultStore:
    """Results of finished runs in a directory.

    Each file is named by the digest of all inputs of a run: the contents of
    cloud, policy and trace, the seed, the other arguments, and the code of
    nova_preempt, which may change in a checkout without its version. A run
    with any changed input is not found.

    :param directory: created if it does not exist
    :param common: {name: value} of the inputs common to all runs
    :raises OSError: the directory cannot be created
    """

    def __init__(self, directory, common):
        self._directory = pathlib.Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._common = {'code': code_digest(), **common}

    def get(self, run):
        """Return the summary of a run, None if it has not finished.

        :param run: {name: value} of its further inputs
        """
        wanted = self._described(run)
        try:
            found = json.loads(self._file(wanted).read_bytes())
        except (FileNotFoundError, ValueError):
            # A damaged file is replaced by a new run.
            return None
        if not isinstance(found, dict) or found.get('run') != wanted:
            return None
        return found.get('summary')

    def put(self, run, summary):
        """Store a summary atomically.

        :raises OSError: the file cannot be written
        """
        wanted = self._described(run)
        with (output_files.replacement(self._file(wanted)) as name,
              open(name, 'w', encoding='utf-8') as stream):
            json.dump({'run': wanted, 'summary': summary}, stream)

    def _described(self, run):
        # Normalized as when read again: JSON has no tuples.
        return json.loads(json.dumps({**self._common, **run}))

    def _file(self, described):
        text = json.dumps(described, sort_keys=True)
        return self._directory / (
            hashlib.sha256(text.encode()).hexdigest() + '.json')
