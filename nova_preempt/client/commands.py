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
"""openstack preemption list, show, explain, simulate, stats, chance.

Times are UTC, as the API has them.
"""

from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_preempt.client import common
from nova_preempt.client import lookup
from nova_preempt.client import values


def _seconds(cost_us):
    return None if cost_us is None else cost_us / 1e6


class ListPreemptions(command.Lister):
    """List preemptions, newest first"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--server', metavar='<server>',
                            help='Of this server (name or id), placed or a '
                                 'victim')
        parser.add_argument('--victim', metavar='<server>',
                            help='Of this victim (name or id)')
        parser.add_argument('--flavor', metavar='<flavor>',
                            help='With a victim of this flavor (name)')
        parser.add_argument('--status', metavar='<status>',
                            choices=values.PREEMPTION_STATUSES,
                            help='intent, claimed, rolling_back, done, '
                                 'rolled_back, aborted or refused '
                                 '(administrators)')
        common.add_interval(parser)
        parser.add_argument('--host', metavar='<host>',
                            help='On this host (administrators)')
        parser.add_argument('--project', metavar='<project>',
                            help='With a side in this project (name or id; '
                                 'administrators)')
        parser.add_argument('--all-projects', action='store_true',
                            help='Of all projects (administrators)')
        common.add_limit(parser)
        parser.add_argument('--marker', metavar='<preemption-id>',
                            help='Those after this one')
        parser.add_argument('--long', action='store_true',
                            help='More columns')
        return parser

    def take_action(self, args):
        client = common.client(self)
        found = list(client.preemptions(
            max_items=args.limit, server_id=_server(self, args.server),
            victim_id=_server(self, args.victim),
            flavor=args.flavor, status=args.status, since=args.since,
            until=args.until, host=args.host,
            project_id=args.project and lookup.project_id(self, args.project),
            all_projects=args.all_projects or None, marker=args.marker))
        if args.host and not found:
            lookup.check_host(client, args.host)
        common.tell_of_others(
            self, args, found,
            lambda: client.preemptions(max_items=1, all_projects=True))
        names = ['ID', 'Created At', 'Status', 'Operation', 'Flavor', 'Host',
                 'Server', 'Victims']
        if args.long:
            names += ['Victim Flavors', 'Cost (s)', 'Reason']
        return names, (tuple(_row(item)[name] for name in names)
                       for item in found)


def _server(command, name):
    return name and lookup.server_id(command, name)


def _row(item):
    server = item['server'] or {}
    return {
        'ID': item['id'],
        'Created At': item['created_at'],
        'Status': item['status'],
        'Server': common.Maybe(server.get('id')),
        'Victims': format_columns.ListColumn(
            [victim['server_id'] for victim in item['victims']]),
        'Operation': item.get('operation'),
        'Flavor': common.Maybe(server.get('flavor')),
        'Victim Flavors': format_columns.ListColumn(
            sorted({victim['flavor'] for victim in item['victims']})),
        'Host': common.Maybe(item.get('host')),
        'Cost (s)': common.Maybe(_seconds(item.get('cost_us'))),
        'Reason': common.Maybe(item.get('reason')),
    }


class ShowPreemption(command.ShowOne):
    """Show a preemption with its decision record"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('preemption', metavar='<preemption-id>')
        return parser

    def take_action(self, args):
        return common.shown(
            common.client(self).get_preemption(args.preemption), args)


class Explain(command.ShowOne):
    """Ask who would end for a new server of a flavor; nobody does"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('flavor', metavar='<flavor>',
                            help='Name or id')
        parser.add_argument('--availability-zone', metavar='<zone>')
        parser.add_argument('--host', metavar='<host>',
                            help='On this host (administrators)')
        return parser

    def take_action(self, args):
        client = common.client(self)
        lookup.check_zone(self, args.availability_zone)
        if args.host:
            lookup.check_host(client, args.host)
        return common.shown(client.explain_preemption(
            args.flavor, **common.given(
                availability_zone=args.availability_zone, host=args.host)),
            args)


class Simulate(command.ShowOne):
    """End a preemptible server as a preemption would, to test it

    It gets its notice, and then what its flavor says happens to it. This is
    no dry run.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('server', metavar='<server>',
                            help='Name or id')
        parser.add_argument('--reason', metavar='<text>',
                            help='Is kept in the record')
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).simulate_preemption(
            lookup.server_id(self, args.server), args.reason), args)


class ShowStatistics(command.Lister):
    """Show numbers of preemptions by the flavor of the victims"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        common.add_interval(parser)
        return parser

    def take_action(self, args):
        found = common.client(self).get_preemption_statistics(
            since=args.since, until=args.until)
        names = ('preemptions', 'preemptions_by_status', 'victims',
                 'victims_by_status', 'servers_placed', 'mean_lifetime_s')
        rows = [*found.flavors, {'flavor': 'total', **found.total}]
        return (('Flavor', 'Preemptions', 'By Status', 'Victims',
                 'Victims By Status', 'Servers Placed',
                 'Mean Lifetime (s)'), (
            (row['flavor'], *(
                format_columns.DictColumn(row[name])
                if isinstance(row[name], dict) else common.Maybe(row[name])
                for name in names)) for row in rows))


class ShowChances(command.Lister):
    """Ask how many servers of flavors would find room now"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('flavors', metavar='<flavor>', nargs='+',
                            help='Name or id')
        parser.add_argument('--availability-zone', metavar='<zone>')
        return parser

    def take_action(self, args):
        lookup.check_zone(self, args.availability_zone)
        found = common.client(self).placement_chances(
            args.flavors, args.availability_zone)
        names = ('flavor', 'availability_zone', 'preemptible', 'normal')
        return (('Flavor', 'Availability Zone', 'Preemptible', 'Normal'), (
            tuple(common.Maybe(item[name]) for name in names)
            for item in found))
