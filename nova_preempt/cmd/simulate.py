# SPDX-License-Identifier: Apache-2.0
"""Simulate a cloud that replays a trace, deciding as the services do."""

import argparse
import contextlib
import json
import os
import pathlib
import sys

from nova_preempt.cmd import arguments
from nova_preempt.cmd import output_files
from nova_preempt.cmd import simulation_cloud_file
from nova_preempt.cmd import simulation_policy
from nova_preempt.cmd import simulation_sweep
from nova_preempt.cmd.simulation_sweep import warn
from nova_preempt.embedded import checked_yaml
from nova_preempt.pictures import drawing
from nova_preempt.pictures import progress_bar
from nova_preempt.simulator import plots
from nova_preempt.simulator import summary_page
from nova_preempt.simulator import summary_tables
from nova_preempt.simulator import sweep
from nova_preempt.simulator import time_series
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_formats
from nova_preempt.simulator.traces import trace_model

_seed = arguments.within(int, 0, 2**63 - 1)
# Arguments of each parser; options without a default are not shown in help.
_HOW = {'formatter_class': argparse.ArgumentDefaultsHelpFormatter,
        'argument_default': argparse.SUPPRESS}


class BadArgument(Exception):
    """Arguments conflict or are invalid; the message says which."""


class _Arguments(argparse.Namespace):
    """Arguments of all commands, None by default."""

    policy = compare = until_us = json = records = plot = format = None
    sort = output = keep = dask = name = html = no_progress = None


def make_parser():
    parser = argparse.ArgumentParser(
        prog=simulation_sweep.PROG, description=__doc__)
    commands = parser.add_subparsers(dest='command', required=True)
    _add_run(commands)
    simulation_sweep.add_parser(commands, _add_trace, _add_until, **_HOW)
    convert = commands.add_parser(
        'convert', help='convert a trace to the native format', **_HOW)
    _add_trace(convert)
    _add_output(convert)
    _add_generate(commands)
    return parser


def _add_run(commands):
    run = commands.add_parser(
        'run', help='simulate a cloud that replays a trace', **_HOW)
    run.add_argument('--cloud', required=True, metavar='FILE',
                     help='YAML file with hosts, flavors and classes')
    _add_trace(run)
    run.add_argument('--policy', metavar='FILE',
                     help='configuration file with [preemption], '
                          '[preemption_engine], [backlog], [classes], '
                          '[reservation] and [energy]; default: the defaults '
                          'of all options')
    run.add_argument('--compare', metavar='FILE', action='append',
                     help='another --policy to simulate with the same trace; '
                          'may be repeated')
    run.add_argument('--name', action='append',
                     help='name of a policy, first of --policy, then of each '
                          '--compare; default: that of its file')
    run.add_argument('--html', metavar='FILE',
                     help='write pictures, tables and settings to this file')
    run.add_argument('--seed', type=_seed, default=0, metavar='N',
                     help='seed of the random delays')
    _add_until(run, 'end of the simulation; default: the last event')
    run.add_argument('--json', action='store_true',
                     help='print the summary as JSON')
    run.add_argument('--records', metavar='FILE',
                     help='write a JSON line for each event to this file, or '
                          'Parquet if it ends in .parquet')
    run.add_argument('--plot', metavar='DIR',
                     help='directory for plots of use, waits, evictions and '
                          'lost work over time')
    run.add_argument('--plot-format', choices=drawing.FORMATS,
                     default='png', help='format of the plots')


def _add_trace(parser):
    parser.add_argument('trace', nargs='+', metavar='TRACE',
                        help='file of the trace, .gz if compressed; several '
                             'files in the order of their times')
    parser.add_argument('--format', choices=sorted(trace_formats.FORMATS),
                        help='format of the trace; default: by its name')
    parser.add_argument('--sort', action='store_true',
                        help='sort the events by time first')
    for name, what in (('vcpus', 'processors'), ('memory_mb', 'MiB'),
                       ('disk_gb', 'GiB of disk')):
        parser.add_argument(
            f'--machine-{name.replace("_", "-")}', type=int, metavar='N',
            default=getattr(trace_model.MachineSize(), name),
            help=f'{what} of a machine, for traces with shares of machines')


def _add_generate(commands):
    load = generator.Load(24, 100)
    part = load.parts[0]
    parser = commands.add_parser(
        'generate', help='generate a synthetic trace', **_HOW)
    parser.add_argument('--hours', type=float, default=load.hours,
                        help='length of the trace')
    parser.add_argument('--per-hour', type=float, default=load.per_hour,
                        help='requests per hour; in Google\'s trace of 2011 '
                             f'{generator.GOOGLE_PER_HOUR:.0f}')
    parser.add_argument('--swing', type=float, default=load.swing,
                        help='amplitude of the rate within a day, from 0 to 1')
    parser.add_argument('--peak-hour', type=float, default=load.peak_hour,
                        help='hour of the day with the highest rate')
    parser.add_argument('--preemptible', type=float, default=0.5,
                        help='share of preemptible servers, from 0 to 1')
    parser.add_argument('--mean-s', type=float, default=part.mean_s,
                        help='mean run time of normal servers, in seconds')
    parser.add_argument('--preemptible-mean-s', type=float,
                        default=part.mean_s, help='the same for preemptible '
                                                  'servers')
    parser.add_argument('--sigma', type=float, default=part.sigma,
                        help='standard deviation of log run times')
    parser.add_argument('--seed', type=_seed, default=0, metavar='N',
                        help='seed of random numbers')
    _add_output(parser)


def _add_output(parser):
    parser.add_argument('--output', metavar='FILE',
                        help='output file; default: standard output')


def _add_until(parser, text):
    parser.add_argument('--until-s', type=_time, metavar='S', dest='until_us',
                        help=text)
    parser.add_argument('--no-progress', action='store_true',
                        help='show no progress on a terminal')


def _time(text):
    try:
        return trace_model.microseconds(text, 'the time')
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


def main(argv=None):
    """Return 0 on success, 1 for a bad file or argument."""
    args = make_parser().parse_args(argv, _Arguments())
    try:
        {'run': _run, 'convert': _convert, 'generate': _generate,
         'sweep': lambda args: simulation_sweep.run(args, *_format(args)),
         }[args.command](args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (trace_model.TraceError, checked_yaml.BadFile, BadArgument, OSError,
            simulation_policy.PolicyError, output_files.NoParquet,
            drawing.NoPlot, sweep.NotInstalled, sweep.RunsLost) as exc:
        warn(exc)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


# -- traces ------------------------------------------------------------------

def _trace(args):
    name, scale = _format(args)
    return trace_formats.Trace(name, args.trace, scale, bool(args.sort))


def _format(args):
    """Return (name of the format, MachineSize)."""
    name = args.format or trace_formats.guess(args.trace[0])
    if not name:
        raise BadArgument('--format is required: the name of '
                          f'{args.trace[0]} does not tell its format')
    try:
        return name, trace_model.MachineSize(args.machine_vcpus,
                                             args.machine_memory_mb,
                                             args.machine_disk_gb)
    except ValueError as exc:
        raise BadArgument(str(exc)) from None


@contextlib.contextmanager
def _output(path):
    if path is None:
        yield sys.stdout
        return
    with output_files.replacement(path) as name, open(
            name, 'w', encoding='utf-8') as stream:
        yield stream


def _convert(args):
    trace = _trace(args)
    with _output(args.output) as stream:
        native_format.write(stream, trace)
    _tell_skipped(trace)


def _tell_skipped(trace):
    for why, count in sorted(trace.skipped.items()):
        warn(f'{count} records are omitted: {why}')


def _generate(args):
    if not 0 <= args.preemptible <= 1:
        raise BadArgument(f'--preemptible is {args.preemptible}; it must be '
                          'from 0 to 1')
    try:
        load = generator.Load(
            args.hours, args.per_hour, args.swing, args.peak_hour, (
                generator.LoadPart('normal', 1 - args.preemptible, args.mean_s,
                                   args.sigma),
                generator.LoadPart('preemptible', args.preemptible,
                                   args.preemptible_mean_s, args.sigma)))
    except ValueError as exc:
        raise BadArgument(str(exc)) from None
    with _output(args.output) as stream:
        native_format.write(stream, generator.generate(load, args.seed))


# -- simulations -------------------------------------------------------------

def _run(args):
    setup, workers = simulation_cloud_file.read_cloud(args.cloud)
    paths = [args.policy, *(args.compare or ())]
    names = _names(paths, args.name or [])
    is_drawn = args.plot is not None or args.html is not None
    if is_drawn:
        drawing.check()
    found = {}
    with contextlib.ExitStack() as stack:
        write = None
        if args.records is not None:
            write = stack.enter_context(
                output_files.record_writer(args.records))
        for name, (_, options) in zip(names, simulation_sweep.read_policies(
                paths, workers), strict=True):
            series = time_series.Series() if is_drawn else None
            found[name] = series, _simulate(
                args, setup, options, write,
                {'policy': name} if len(names) > 1 else {}, series,
                tell_skipped=not found)
    summaries = [summary for _, summary in found.values()]
    _print(names, summaries, args.json)
    pictures = plots.plots({
        name: (series, summary['capacity'])
        for name, (series, summary) in found.items()}) if is_drawn else []
    for picture in pictures if args.plot is not None else ():
        warn(f'{drawing.draw(picture, args.plot, args.plot_format)} is drawn')
    if args.html is not None:
        with _output(args.html) as stream:
            stream.write(summary_page.page(
                {'trace': ', '.join(args.trace), 'cloud': args.cloud,
                 'seed': str(args.seed), 'end': 'the last event'
                 if args.until_us is None else f'{args.until_us / 1e6:g} s'},
                {name: simulation_policy.given(file) for name, file
                 in zip(names, paths, strict=True)}, summaries, pictures,
                pathlib.Path(args.cloud).read_text(encoding='utf-8')))
        warn(f'{args.html} is written')


def _names(paths, given):
    """Return a name of each policy, no two the same.

    :param given: names of the first of them
    """
    if len(given) > len(paths):
        raise BadArgument(f'{len(given)} names are given with --name for '
                          f'{len(paths)} policies')
    names = [*given, *(pathlib.PurePath(path or 'defaults').stem
                       for path in paths[len(given):])]
    return names if len(set(names)) == len(names) else [
        f'{name} ({nth})' for nth, name in enumerate(names, 1)]


def _simulate(args, setup, options, write, more, over_time, tell_skipped):
    run = sweep.simulations_module()
    trace = _trace(args)
    simulation = run.Simulation(
        setup, options, args.seed,
        write and (lambda record: write({**record, **more})), over_time)
    events = progress_bar.followed(
        iter(trace), lambda count, event, took_s: (
            event.at_us / args.until_us if args.until_us else trace.share(),
            f'{count / took_s:.0f} events a second'), not args.no_progress)
    try:
        summary = simulation.run(events, args.until_us)
    except run.SimulationError as exc:
        raise BadArgument(f'{args.trace[0]}: {exc}') from None
    if tell_skipped:
        _tell_skipped(trace)
    return summary


def _print(titles, summaries, as_json):
    if as_json:
        print(json.dumps(
            summaries[0] if len(titles) == 1 else
            [{'policy': title, **summary} for title, summary
             in zip(titles, summaries, strict=True)], indent=2))
        return
    print('\n'.join(summary_tables.table(titles, summaries)))


if __name__ == '__main__':
    sys.exit(main())
