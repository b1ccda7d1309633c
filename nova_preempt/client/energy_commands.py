# SPDX-License-Identifier: Apache-2.0
"""openstack energy show, report and host, for administrators."""

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import plot
from nova_preempt.client import progress
from nova_preempt.client import sentences

_HOST = base.option('host', metavar='<host>', help='Name of the host')


class ShowEnergy(base.ShowCommand):
    """Show power draw, sleeping hosts and savings"""

    options = (base.option(
        '--since', metavar='<time>', type=argtypes.time,
        help='Start of the savings (ISO 8601, UTC without an offset; '
             'default: 30 days ago)'),)
    why = sentences.energy

    def ask(self, client, args):
        return client.get_energy(since=args.since)


def _figure(name):
    """Return a column of a figure, None if it is unknown."""
    return lambda item: (item['figures'] or {}).get(name)


class ListHosts(base.ListCommand):
    """List hosts with their speed, power and power state"""

    columns = {
        'Name': 'name', 'State': 'state', 'Since': 'since',
        'Watts Now': 'watts_now', 'FLOPS per Watt': _figure('flops_per_watt')}
    more_columns = {
        'FLOPS': _figure('flops'), 'Watts': _figure('watts'),
        'Idle Watts': _figure('idle_watts'),
        'Measured At': _figure('measured_at'), 'Source': _figure('source'),
        'Boot (s)': 'boot_s', 'Idle Intervals': 'idle_intervals',
        'Reason': 'reason'}
    empty = ('No host has been measured or switched yet; is [energy] '
             'configured, and the engine running?')

    def ask(self, client, args):
        return sorted(client.energy_hosts(), key=_rank)


def _rank(item):
    """Return the sort key: most efficient first, unknown last."""
    efficiency = _figure('flops_per_watt')(item)
    return efficiency is None, -(efficiency or 0), item['name']


class ReportEnergy(base.ReportCommand):
    """Show power draw and savings over time"""

    draw = plot.draw_energy
    why = sentences.energy

    def report(self, client, **query):
        return client.get_energy_report(**query)

    def with_series(self, found):
        return [found]


class RetryHostBoot(base.ActionCommand):
    """Retry the boot of a failed host"""

    options = (_HOST, progress.WAIT)

    def act(self, client, args):
        client.retry_energy_host(args.host)
        if args.wait:
            progress.wait(self, lambda: client.get_energy_host(args.host),
                          sentences.energy_host,
                          lambda item: item.state == 'on',
                          lambda item: item.state == 'failed')


class ShowHost(base.ShowCommand):
    """Show the speed, power and power state of a host"""

    options = (_HOST,)
    why = sentences.energy_host

    def ask(self, client, args):
        return client.get_energy_host(args.host)


class SetHostEfficiency(base.ActionCommand):
    """Set the speed and power of a host, replacing measured figures"""

    options = (
        _HOST, base.option('--flops', metavar='<number>', type=float,
                    help='Floating-point operations a second at full load'),
        base.option('--watts', metavar='<number>', type=float,
                    help='Watts at full load'),
        base.option('--idle-watts', metavar='<number>', type=float,
                    help='Watts without servers'),
        base.option('--source', metavar='<text>',
                    help='Origin of the figures'))

    def act(self, client, args):
        client.set_energy_figures(args.host, **base.given(
            flops=args.flops, watts=args.watts, idle_watts=args.idle_watts,
            source=args.source))


class UnsetHostEfficiency(base.ActionCommand):
    """Delete the measured figures of a host"""

    options = (_HOST,)

    def act(self, client, args):
        client.delete_energy_figures(args.host, ignore_missing=False)
