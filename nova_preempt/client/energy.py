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
"""openstack energy show, hosts, report and more, for administrators."""

from osc_lib import exceptions
from osc_lib.command import command

from nova_preempt.client import common
from nova_preempt.client import plot
from nova_preempt.client import values


class ShowEnergy(command.ShowOne):
    """Show what the cloud draws, which hosts sleep and what that saves"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--since', metavar='<time>', type=values.time,
                            help='What was saved from then on (ISO 8601, UTC '
                                 'without an offset); the last 30 days by '
                                 'default')
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).get_energy(
            since=args.since))


class ListHosts(command.Lister):
    """List hosts with what they deliver and draw, and whether they sleep"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--long', action='store_true',
                            help='More columns')
        return parser

    def take_action(self, args):
        names = ['Name', 'State', 'Since', 'Watts Now', 'FLOPS per Watt']
        if args.long:
            names += ['FLOPS', 'Watts', 'Idle Watts', 'Measured At',
                      'Source', 'Boot (s)', 'Idle Intervals', 'Reason']
        found = sorted(common.client(self).energy_hosts(), key=_rank)
        return names, (tuple(_row(item)[name] for name in names)
                       for item in found)


def _rank(item):
    """The most efficient first, the unknown last."""
    efficiency = (item['figures'] or {}).get('flops_per_watt')
    return efficiency is None, -(efficiency or 0), item['name']


def _row(item):
    figures = item['figures'] or {}
    return {
        'Name': item['name'],
        'State': item['state'],
        'Since': item['since'],
        'Watts Now': item['watts_now'],
        'FLOPS per Watt': figures.get('flops_per_watt'),
        'FLOPS': figures.get('flops'),
        'Watts': figures.get('watts'),
        'Idle Watts': figures.get('idle_watts'),
        'Measured At': figures.get('measured_at'),
        'Source': figures.get('source'),
        'Boot (s)': item['boot_s'],
        'Idle Intervals': item['idle_intervals'],
        'Reason': item['reason'],
    }


class Report(command.ShowOne):
    """Show what was drawn and saved over time"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        common.add_interval(parser)
        parser.add_argument(
            '--plot', metavar='<file>', type=plot.path,
            help='Draw it into this file, .svg or .png; needs matplotlib '
                 '(pip install nova-preempt[report])')
        parser.add_argument('--series', action='store_true',
                            help='Show the points, too')
        return parser

    def take_action(self, args):
        found = common.client(self).get_energy_report(
            since=args.since, until=args.until).answer()
        if args.plot:
            try:
                plot.draw(found, args.plot)
            except (plot.NoPlot, OSError) as exc:
                raise exceptions.CommandError(str(exc)) from None
        if not args.series:
            found['points'] = len(found.pop('series'))
        return common.shown(found)


class RetryHost(command.Command):
    """Try again to boot a host that has failed"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>')
        return parser

    def take_action(self, args):
        common.client(self).retry_energy_host(args.host)


class SetFigures(command.ShowOne):
    """Say what a host delivers and draws, in place of what was measured"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>')
        parser.add_argument('--flops', metavar='<number>', type=float,
                            help='Floating-point operations a second at full '
                                 'load')
        parser.add_argument('--watts', metavar='<number>', type=float,
                            help='What it draws at full load')
        parser.add_argument('--idle-watts', metavar='<number>', type=float,
                            help='What it draws without servers')
        parser.add_argument('--source', metavar='<text>',
                            help='Where this comes from')
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).set_energy_figures(
            args.host, **common.given(
                flops=args.flops, watts=args.watts,
                idle_watts=args.idle_watts, source=args.source)))


class UnsetFigures(command.Command):
    """Forget what was measured of a host"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>')
        return parser

    def take_action(self, args):
        common.client(self).delete_energy_figures(
            args.host, ignore_missing=False)
