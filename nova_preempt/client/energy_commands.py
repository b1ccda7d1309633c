# SPDX-License-Identifier: Apache-2.0
"""openstack energy show, hosts, report and more, for administrators."""

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import plot

_HOST = base.option('host', metavar='<host>')


class ShowEnergy(base.Show):
    """Show what the cloud draws, which hosts sleep and what that saves"""

    options = (base.option(
        '--since', metavar='<time>', type=argtypes.time,
        help='What was saved from then on (ISO 8601, UTC without an offset); '
             'the last 30 days by default'),)
    for_people = False

    def ask(self, client, args):
        return client.get_energy(since=args.since)


def _figure(name):
    """A column of a figure, None if there are none."""
    return lambda item: (item['figures'] or {}).get(name)


class ListHosts(base.List):
    """List hosts with what they deliver and draw, and whether they sleep"""

    columns = {
        'Name': 'name', 'State': 'state', 'Since': 'since',
        'Watts Now': 'watts_now',
        'FLOPS per Watt': _figure('flops_per_watt')}
    more_columns = {
        'FLOPS': _figure('flops'), 'Watts': _figure('watts'),
        'Idle Watts': _figure('idle_watts'),
        'Measured At': _figure('measured_at'), 'Source': _figure('source'),
        'Boot (s)': 'boot_s', 'Idle Intervals': 'idle_intervals',
        'Reason': 'reason'}

    def ask(self, client, args):
        return sorted(client.energy_hosts(), key=_rank)


def _rank(item):
    """The most efficient first, the unknown last."""
    efficiency = _figure('flops_per_watt')(item)
    return efficiency is None, -(efficiency or 0), item['name']


class Report(base.Report):
    """Show what was drawn and saved over time"""

    draw = plot.draw_energy

    def report(self, client, **query):
        return client.get_energy_report(**query)

    def with_series(self, found):
        return [found]


class RetryHost(base.Command):
    """Try again to boot a host that has failed"""

    options = (_HOST,)

    def act(self, client, args):
        client.retry_energy_host(args.host)


class SetFigures(base.Show):
    """Say what a host delivers and draws, in place of what was measured"""

    options = (
        _HOST,
        base.option('--flops', metavar='<number>', type=float,
                    help='Floating-point operations a second at full load'),
        base.option('--watts', metavar='<number>', type=float,
                    help='What it draws at full load'),
        base.option('--idle-watts', metavar='<number>', type=float,
                    help='What it draws without servers'),
        base.option('--source', metavar='<text>',
                    help='Where this comes from'))

    def ask(self, client, args):
        return client.set_energy_figures(args.host, **base.given(
            flops=args.flops, watts=args.watts, idle_watts=args.idle_watts,
            source=args.source))


class UnsetFigures(base.Command):
    """Forget what was measured of a host"""

    options = (_HOST,)

    def act(self, client, args):
        client.delete_energy_figures(args.host, ignore_missing=False)
