# SPDX-License-Identifier: Apache-2.0
"""openstack preemption list, show, explain, simulate, stats, chance.

Times are UTC, as the API has them.
"""

from osc_lib.cli import format_columns

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import name_lookup
from nova_preempt.client import progress
from nova_preempt.client import sentences

_ZONE = base.option('--availability-zone', metavar='<zone>',
                    help='Only hosts of this availability zone')


def _of_server(name):
    """Return a column of the placed server, empty if it is unknown."""
    return lambda item: (item['server'] or {}).get(name)


def _cost_s(item):
    cost_us = item.get('cost_us')
    return None if cost_us is None else cost_us / 1e6


class ListPreemptions(base.ProjectListCommand):
    """List preemptions, newest first"""

    call = 'preemptions'
    empty = 'No preemption has affected servers of this project.'
    same = ('flavor', 'status', 'since', 'until', 'host')
    options = (
        base.option('--server', metavar='<server>',
                    help='List preemptions for or of this server (name or '
                         'id)'),
        base.option('--victim', metavar='<server>',
                    help='List preemptions of this server (name or id)'),
        base.option('--flavor', metavar='<flavor>', help='List '
                    'preemptions with a victim of this flavor (name)'),
        base.option('--status', metavar='<status>',
                    choices=argtypes.PREEMPTION_STATUSES,
                    help='intent, claimed, rolling_back, done, '
                         'rolled_back, aborted or refused '
                         '(administrators)'),
        *base.INTERVAL,
        base.option('--host', metavar='<host>',
                    help='List preemptions on this host (administrators)'),
        *base.of_projects('preemption', 'List only preemptions that affect'))
    columns = {
        'ID': 'id', 'Created At': 'created_at', 'Status': 'status',
        'Operation': 'operation', 'Flavor': _of_server('flavor'),
        'Host': 'host', 'Server': _of_server('id'),
        'Victims': base.each('victims', 'server_id')}
    more_columns = {
        'Victim Flavors': lambda item: format_columns.ListColumn(
            sorted({victim['flavor'] for victim in item['victims']})),
        'Cost (s)': _cost_s, 'Reason': 'reason'}

    def query(self, args):
        return {'server_id': args.server
                and name_lookup.server_id(self, args.server),
                'victim_id': args.victim
                and name_lookup.server_id(self, args.victim)}


class ShowPreemption(base.ShowCommand):
    """Show a preemption with its decision record"""

    options = (base.option('preemption', metavar='<preemption-id>',
                           help='Id of the preemption'),)

    why = sentences.preemption

    def ask(self, client, args):
        return client.get_preemption(args.preemption)


class PreviewPreemption(base.ShowCommand):
    """Show the victims of a new server of a flavor, without evicting them"""

    options = (
        base.option('flavor', metavar='<flavor>',
                    help='Flavor of the new server (name or id)'), _ZONE,
        base.option('--host', metavar='<host>', help='Host of the new '
                    'server (administrators)'))
    why = sentences.explanation

    def ask(self, client, args):
        name_lookup.check_zone(self, args.availability_zone)
        if args.host:
            name_lookup.check_host(client, args.host)
        return client.explain_preemption(args.flavor, **base.given(
            availability_zone=args.availability_zone, host=args.host))


class TriggerEviction(base.ShowCommand):
    """Evict a preemptible server as a preemption would, for tests

    The server gets its notice, and then the action of its flavor. This is not
    a dry run.
    """

    options = (
        base.option('server', metavar='<server>',
                    help='Server to evict (name or id)'),
        base.option('--reason', metavar='<text>',
                    help='Reason in the record of the preemption'),
        progress.WAIT)
    why = sentences.preemption

    def ask(self, client, args):
        made = client.simulate_preemption(
            name_lookup.server_id(self, args.server), args.reason)
        return progress.wait(
            self, lambda: client.get_preemption(made.id),
            sentences.preemption, progress.until('done'),
            progress.until('rolled_back', 'aborted')) if args.wait else made


def _by_status(name):
    return lambda item: format_columns.DictColumn(item[name])


class ShowStatistics(base.ListCommand):
    """Show numbers of preemptions by the flavor of the victims"""

    options = base.INTERVAL
    columns = {
        'Flavor': 'flavor', 'Preemptions': 'preemptions',
        'By Status': _by_status('preemptions_by_status'),
        'Victims': 'victims',
        'Victims By Status': _by_status('victims_by_status'),
        'Servers Placed': 'servers_placed',
        'Mean Lifetime (s)': 'mean_lifetime_s'}
    empty = 'There are no preemptions.'

    def ask(self, client, args):
        found = client.get_preemption_statistics(
            since=args.since, until=args.until)
        return [*found.flavors, {'flavor': 'total', **found.total}]


class ListRates(base.ListCommand):
    """Show how often preemptible servers of flavors are evicted

    The share is that of the hours of servers in which they were evicted.
    """

    options = (
        base.option('--flavor', metavar='<flavor>', action='append',
                    default=[], help='Name of a flavor (may be repeated; '
                    'administrators: default: all)'),
        _ZONE)
    columns = {
        'Flavor': 'flavor', 'Availability Zone': 'availability_zone',
        'Hours': 'hours', 'Evicted': 'evicted_share',
        'Median Life': 'median_life'}
    more_columns = {
        'Evictions': 'evictions', 'Server Hours': 'server_hours',
        'Share': 'exact_share', 'Median Life (s)': 'median_life_s'}
    empty = ('Too few servers of other projects have run in the last 30 days '
             'to tell of their evictions.')

    def ask(self, client, args):
        name_lookup.check_zone(self, args.availability_zone)
        return client.eviction_rates(args.flavor, args.availability_zone)


class ShowCapacityByFlavor(base.ListCommand):
    """Show how many more servers of flavors could be placed now"""

    options = (
        base.option('flavors', metavar='<flavor>', nargs='+',
                    help='Flavors (names or ids)'),
        _ZONE)
    columns = {
        'Flavor': 'flavor',
        'Availability Zone': 'availability_zone',
        'Preemptible': 'preemptible',
        'Normal': 'normal'}
    empty = 'There is no availability zone with hosts.'

    def ask(self, client, args):
        name_lookup.check_zone(self, args.availability_zone)
        return client.placement_chances(args.flavors, args.availability_zone)
