# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-benchmark: measures FLOPS and watts of a compute host.

Run on a compute host without servers; it loads all cores.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import os
import shlex
import socket
import sys

from keystoneauth1 import exceptions as ks_exc
from openstack import connection
from openstack import exceptions as sdk_exc
from oslo_config import cfg
import yaml

from nova_preempt import exceptions
from nova_preempt import sdk
from nova_preempt.cmd import output_files
import nova_preempt.conf
from nova_preempt.conf import benchmark_credentials
from nova_preempt.conf import energy
from nova_preempt.conf import preemption
from nova_preempt.power import host_benchmark
from nova_preempt.power import hosts_file
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from nova_preempt.power import rest_client

# Members of Figures that the files and the API accept.
_KEPT = ('flops', 'watts', 'idle_watts')
_REPORT_TIMEOUT_S = 60
_PREFIXES = ('', 'K', 'M', 'G', 'T', 'P')


def _above_0(text):
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f'{text} must be above 0')
    return number


def _from_0(text):
    return _above_0(text) if float(text) else 0.0


def _count(text):
    return int(_above_0(text))


def make_parser():
    parser = argparse.ArgumentParser(
        prog='nova-preempt-benchmark', description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument(
        '--config-file', action='append', default=argparse.SUPPRESS,
        help='configuration file with [energy], for the power sources, and '
             '[preemption_benchmark], for --report; may be repeated; '
             "default: Nova's files")
    parser.add_argument('--host', default=socket.getfqdn(),
                        help="hypervisor hostname of this host in Nova")
    work = parser.add_argument_group('work')
    work.add_argument('--run-s', type=_above_0, default=10.0, metavar='S',
                      help='duration of a run, in seconds')
    work.add_argument('--spread', type=_above_0, default=0.02, metavar='X',
                      help='repeat runs until the last three differ by less '
                           'than this share of their median')
    work.add_argument('--max-runs', type=_count, default=30, metavar='N',
                      help='most runs; fail if they differ more than --spread')
    work.add_argument('--size', type=_count, default=2048, metavar='N',
                      help='number of rows of a matrix; each core uses 3 '
                           'matrices of 8 * N * N bytes')
    work.add_argument('--hpl', metavar='COMMAND', help='run this HPL command '
                      'instead, such as "mpirun -np 64 xhpl"')
    work.add_argument('--hpl-directory', default='.', metavar='PATH',
                      help='directory with HPL.dat')
    power = parser.add_argument_group('power')
    power.add_argument('--idle-s', type=_from_0, default=60.0, metavar='S',
                       help='seconds to measure the idle power first')
    power.add_argument('--interval-s', type=_above_0, default=5.0,
                       metavar='S', help='seconds between power readings')
    power.add_argument('--settle-s', type=_from_0, default=15.0, metavar='S',
                       help='seconds until the power meter follows the load')
    result = parser.add_argument_group('result')
    result.add_argument('--verbose', action='store_true',
                        help='print each run to standard error')
    result.add_argument('--json', action='store_true', help='print JSON')
    result.add_argument('--output', metavar='PATH',
                        help="add or replace this host's entry in this file, "
                             'for [energy]figures_file')
    result.add_argument('--report', action='store_true',
                        help='send the figures to the Preemption API, with '
                             'the credentials in [preemption_benchmark] or '
                             'else in [preemption]')
    result.add_argument('--endpoint', metavar='URL', help='endpoint of the '
                        'Preemption API; default: from the catalog')
    return parser


def _load_conf(files):
    conf = cfg.ConfigOpts()
    nova_preempt.conf.register_opts(conf)
    arguments = [argument for name in files
                 for argument in ('--config-file', name)]
    conf(arguments, project='nova')
    return conf


def _measure(args, conf):
    source = None
    if conf[energy.GROUP].sources:
        source = power_readings.PowerReader(conf)
    if args.hpl:
        workload = host_benchmark.Hpl(shlex.split(args.hpl),
                                      args.hpl_directory)
    else:
        workload = host_benchmark.Blas(args.size, args.run_s)
    with contextlib.closing(workload):
        return host_benchmark.measure(
            args.host, workload, source, args.idle_s, args.interval_s,
            args.settle_s, args.spread, args.max_runs,
            _tell if args.verbose else lambda flops: None)


def _tell(flops):
    print(_scale(flops, 'FLOPS'), file=sys.stderr)


def _scale(value, unit):
    """Format a number with a prefix, such as 1.23 TFLOPS."""
    if value is None:
        return f'unknown {unit}'
    step = 0
    while abs(value) >= 1000 and step < len(_PREFIXES) - 1:
        value, step = value / 1000, step + 1
    return f'{value:.4g} {_PREFIXES[step]}{unit}'


def _print(figures, as_json):
    if as_json:
        print(json.dumps({**dataclasses.asdict(figures),
                          'flops_per_watt': figures.flops_per_watt}, indent=2))
        return
    for name, value in (
            ('host', figures.host),
            ('measured with', figures.source),
            ('runs', figures.runs),
            ('spread', f'{100 * figures.spread:.1f} %'),
            ('at full load', _scale(figures.flops, 'FLOPS')),
            ('', _scale(figures.watts, 'W')),
            ('', _scale(figures.flops_per_watt, 'FLOPS/W')),
            ('idle', _scale(figures.idle_watts, 'W'))):
        print(f'{name:14}  {value}')


def _kept(figures):
    return {name: getattr(figures, name) for name in _KEPT
            if getattr(figures, name) is not None}


def write(path, figures):
    """Add or replace the figures of the host in a YAML file.

    :raises OSError: the file cannot be written
    :raises HostsFileError: the existing file is invalid
    """
    content = hosts_file.load_yaml(path, {'type': 'object'}) if (
        os.path.exists(path)) else {}
    content[figures.host] = _kept(figures)
    with output_files.replacement(path) as name, open(
            name, 'w', encoding='utf-8') as stream:
        # Nova's user reads it.
        os.fchmod(stream.fileno(), 0o644)
        yaml.safe_dump(content, stream)


def _credentials(conf):
    """Return the option group of the credentials for --report."""
    for name in (benchmark_credentials.GROUP, preemption.GROUP):
        if conf[name].auth_type or conf[name].auth_section:
            return name
    raise host_benchmark.BenchmarkError(
        f'--report: neither [{benchmark_credentials.GROUP}]auth_type nor '
        f'[{preemption.GROUP}]auth_type is set')


def _report(conf, figures, endpoint):
    name = _credentials(conf)
    found = {'preemption_endpoint_override': endpoint} if endpoint else {}
    cloud = sdk.add_to(connection.Connection(
        session=rest_client.make_session(conf, _REPORT_TIMEOUT_S, group=name),
        region_name=conf[name].region_name,
        interface=conf[name].valid_interfaces, **found))
    cloud.preemption.set_energy_figures(
        figures.host, source=figures.source, **_kept(figures))


def _run(args):
    conf = _load_conf(getattr(args, 'config_file', ()))
    figures = _measure(args, conf)
    _print(figures, args.json)
    if figures.spread > args.spread:
        raise host_benchmark.BenchmarkError(
            f'the last runs differ by {100 * figures.spread:.1f} %, more than '
            f'{100 * args.spread:g} %; stop other load on this host')
    if args.output:
        write(args.output, figures)
    if args.report:
        _report(conf, figures, args.endpoint)


def main(argv=None):
    args = make_parser().parse_args(argv)
    try:
        _run(args)
    except (host_benchmark.BenchmarkError, power_errors.HostsFileError,
            cfg.Error, exceptions.InvalidConfiguration, ks_exc.ClientException,
            sdk_exc.SDKException, OSError) as exc:
        print(f'nova-preempt-benchmark: {exc}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
