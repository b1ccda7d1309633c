# SPDX-License-Identifier: Apache-2.0
"""Reproduce the evaluations of papers with the code of the core.

Prints each figure with the published figure, the deviation and its reason.
Where the data of a paper is not public, its replacement is named.
"""

import argparse
import importlib
import json
import sys
import time

from nova_preempt.cmd import arguments
from nova_preempt.core.batch import solver_choice
from nova_preempt.pictures import drawing
from nova_preempt.simulator.papers import figures

PROG = 'nova-preempt-reproduce'

#: {module of simulator.papers: subject and reference}.
PAPERS = {
    'opie': 'preemptible servers: García et al., FGCS 2019',
    'climate': 'reservations and energy: Rossigneux et al.',
    'qos': 'promised availabilities: Carvalho et al., JISA 2020',
    'ecsched': 'placement of many: Hu et al., Euro-Par 2018',
    'sla': 'cores by class of service: LNCS 11339',
}


def make_parser():
    parser = argparse.ArgumentParser(
        prog=PROG, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='papers:\n' + '\n'.join(
            f'  {name:8} {what}' for name, what in PAPERS.items()))
    parser.add_argument('paper', choices=PAPERS)
    parser.add_argument(
        '--scale', type=arguments.within(float, 0.01, 1), default=1.0,
        metavar='PART',
        help='share of the evaluation, from 0.01 to 1: fewer repetitions and '
             'less simulated time. Default: 1, as for the figures in the '
             'documentation')
    parser.add_argument('--seed', type=int, default=1, metavar='N',
                        help='seed of random numbers. Default: 1')
    parser.add_argument('--plot', metavar='DIR', help='directory for plots')
    parser.add_argument('--plot-format', choices=drawing.FORMATS,
                        default='png',
                        help='format of the plots. Default: png')
    parser.add_argument('--json', action='store_true',
                        help='print the figures as JSON')
    return parser


def main(argv=None):
    """Return 0 on success, 1 if a package is missing or a file fails."""
    args = make_parser().parse_args(argv)
    try:
        if args.plot:
            drawing.check()
        module = importlib.import_module(
            f'nova_preempt.simulator.papers.{args.paper}')
        found = module.run(args.scale, args.seed, time.process_time)
        if args.json:
            print(json.dumps(found.as_dict(), indent=2))
        else:
            print('\n'.join(figures.lines(found)))
        if args.plot:
            for plot in found.plots:
                file = drawing.draw(plot, args.plot, args.plot_format)
                print(f'{PROG}: {file} is drawn', file=sys.stderr)
    except (solver_choice.NotInstalled, drawing.NoPlot, OSError) as exc:
        print(f'{PROG}: {exc}', file=sys.stderr)
        return 1
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.startswith('nova_preempt'):
            raise
        print(f'{PROG}: {exc.name} is needed: pip install '
              'nova-preempt[simulator,batch,classes]', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
