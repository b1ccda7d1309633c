# SPDX-License-Identifier: Apache-2.0
"""openstack preemption list, show, explain, simulate, stats, chance.

Times are UTC, as the API has them.
"""

from osc_lib.cli import format_columns

from nova_preempt.client import common
from nova_preempt.client import lookup
from nova_preempt.client import values

_ZONE = common.option('--availability-zone', metavar='<zone>')


def _of_server(name):
    """A column of the server that was placed, if it is known."""
    return lambda item: common.Maybe((item['server'] or {}).get(name))


def _cost_s(item):
    cost_us = item.get('cost_us')
    return common.Maybe(None if cost_us is None else cost_us / 1e6)


class ListPreemptions(common.ListOfProjects):
    """List preemptions, newest first"""

    call = 'preemptions'
    same = ('flavor', 'status', 'since', 'until', 'host')
    options = (
        common.option('--server', metavar='<server>',
                      help='Of this server (name or id), placed or a victim'),
        common.option('--victim', metavar='<server>',
                      help='Of this victim (name or id)'),
        common.option('--flavor', metavar='<flavor>',
                      help='With a victim of this flavor (name)'),
        common.option('--status', metavar='<status>',
                      choices=values.PREEMPTION_STATUSES,
                      help='intent, claimed, rolling_back, done, '
                           'rolled_back, aborted or refused '
                           '(administrators)'),
        *common.INTERVAL,
        common.option('--host', metavar='<host>',
                      help='On this host (administrators)'),
        *common.of_projects('preemption', 'With a side in'))
    columns = {
        'ID': 'id', 'Created At': 'created_at', 'Status': 'status',
        'Operation': 'operation', 'Flavor': _of_server('flavor'),
        'Host': common.maybe('host'), 'Server': _of_server('id'),
        'Victims': common.each('victims', 'server_id')}
    more_columns = {
        'Victim Flavors': lambda item: format_columns.ListColumn(
            sorted({victim['flavor'] for victim in item['victims']})),
        'Cost (s)': _cost_s, 'Reason': common.maybe('reason')}

    def query(self, args):
        return {'server_id': args.server
                and lookup.server_id(self, args.server),
                'victim_id': args.victim
                and lookup.server_id(self, args.victim)}


class ShowPreemption(common.Show):
    """Show a preemption with its decision record"""

    options = (common.option('preemption', metavar='<preemption-id>'),)

    def ask(self, client, args):
        return client.get_preemption(args.preemption)


class Explain(common.Show):
    """Ask who would end for a new server of a flavor; nobody does"""

    options = (
        common.option('flavor', metavar='<flavor>', help='Name or id'),
        _ZONE,
        common.option('--host', metavar='<host>',
                      help='On this host (administrators)'))

    def ask(self, client, args):
        lookup.check_zone(self, args.availability_zone)
        if args.host:
            lookup.check_host(client, args.host)
        return client.explain_preemption(args.flavor, **common.given(
            availability_zone=args.availability_zone, host=args.host))


class Simulate(common.Show):
    """End a preemptible server as a preemption would, to test it

    It gets its notice, and then what its flavor says happens to it. This is
    no dry run.
    """

    options = (
        common.option('server', metavar='<server>', help='Name or id'),
        common.option('--reason', metavar='<text>',
                      help='Is kept in the record'))

    def ask(self, client, args):
        return client.simulate_preemption(
            lookup.server_id(self, args.server), args.reason)


def _by_status(name):
    return lambda item: format_columns.DictColumn(item[name])


class ShowStatistics(common.List):
    """Show numbers of preemptions by the flavor of the victims"""

    options = common.INTERVAL
    columns = {
        'Flavor': 'flavor', 'Preemptions': common.maybe('preemptions'),
        'By Status': _by_status('preemptions_by_status'),
        'Victims': common.maybe('victims'),
        'Victims By Status': _by_status('victims_by_status'),
        'Servers Placed': common.maybe('servers_placed'),
        'Mean Lifetime (s)': common.maybe('mean_lifetime_s')}

    def ask(self, client, args):
        found = client.get_preemption_statistics(
            since=args.since, until=args.until)
        return [*found.flavors, {'flavor': 'total', **found.total}]


class ShowChances(common.List):
    """Ask how many servers of flavors would find room now"""

    options = (
        common.option('flavors', metavar='<flavor>', nargs='+',
                      help='Name or id'),
        _ZONE)
    columns = {
        'Flavor': common.maybe('flavor'),
        'Availability Zone': common.maybe('availability_zone'),
        'Preemptible': common.maybe('preemptible'),
        'Normal': common.maybe('normal')}

    def ask(self, client, args):
        lookup.check_zone(self, args.availability_zone)
        return client.placement_chances(args.flavors, args.availability_zone)
