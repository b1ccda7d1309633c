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
"""openstack reservation host, property and limits: what can be reserved."""

from openstack import exceptions as sdk_exc
from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_preempt.client import common
from nova_preempt.client import lookup
from nova_preempt.client import values


class ListHosts(command.Lister):
    """List hosts and who has reserved them (administrators)"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        common.add_limit(parser)
        parser.add_argument('--marker', metavar='<host>',
                            help='Those after this one')
        parser.add_argument('--long', action='store_true',
                            help='More columns')
        return parser

    def take_action(self, args):
        found = common.client(self).hosts(max_items=args.limit,
                                          marker=args.marker)
        names = ['Name', 'Reservable', 'State', 'Status', 'Vacant',
                 'Reservations']
        if args.long:
            names += ['Servers', 'FLOPS per Watt', 'Properties']
        return names, (tuple(_row(item)[name] for name in names)
                       for item in found)


def _row(item):
    return {
        'Name': item['name'],
        'Reservable': item['reservable'],
        'State': item['state'],
        'Status': item['status'],
        'Vacant': item['vacant'],
        'Reservations': format_columns.ListColumn([
            f'{its["start_at"]}/{its["end_at"]}'
            for its in item['reservations']]),
        'Servers': item['running_servers'],
        'FLOPS per Watt': common.Maybe(item['flops_per_watt']),
        'Properties': common.Json(item['properties']),
    }


class ShowHost(command.ShowOne):
    """Show a host, its properties and reservations (administrators)"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>')
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).get_host(args.host), args)


class SetHost(command.ShowOne):
    """Say whether a host can be reserved, and what it has (administrators)"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>')
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            '--reservable', dest='reservable', action='store_const',
            const=True, help='It can be reserved')
        group.add_argument(
            '--not-reservable', dest='reservable', action='store_const',
            const=False, help='It cannot; what is reserved stays so')
        group.add_argument(
            '--default-reservable', action='store_true',
            help='As [reservation]reservable_default says')
        parser.add_argument(
            '--property', metavar='<name>=<value>', action='append',
            default=[], type=values.host_property,
            help='Give it an extra property; a list as JSON (repeat for '
                 'more)')
        parser.add_argument(
            '--unset-property', metavar='<name>', action='append',
            default=[], help='Take an extra property from it (repeat for '
                             'more)')
        return parser

    def take_action(self, args):
        changes = {}
        if args.default_reservable or args.reservable is not None:
            changes['reservable'] = args.reservable
        extra = {**dict(args.property),
                 **dict.fromkeys(args.unset_property)}
        if extra:
            changes['extra'] = extra
        if not changes:
            raise exceptions.CommandError('There is nothing to change.')
        return common.shown(common.client(self).update_host(
            args.host, **changes), args)


class ListProperties(command.Lister):
    """List the properties of hosts that can be asked for"""

    def take_action(self, args):
        names = ('Name', 'Type', 'Values', 'Hidden')
        return names, ((
            item['name'], item['type'],
            format_columns.ListColumn(list(map(str, item.known_values))),
            item['hidden']) for item in common.client(self).properties())


class SetProperty(command.ShowOne):
    """Hide a property of hosts from users, or show it (administrators)"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('property', metavar='<property>')
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument('--hidden', dest='hidden', action='store_const',
                           const=True, help='Users do not see it')
        group.add_argument('--visible', dest='hidden', action='store_const',
                           const=False, help='Users see it')
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).update_property(
            args.property, hidden=args.hidden), args)


class ShowLimits(command.ShowOne):
    """Show how much a project may reserve"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('project', metavar='<project>', nargs='?',
                            help='Another project (name or id; '
                                 'administrators)')
        return parser

    def take_action(self, args):
        try:
            return common.shown(common.client(self).get_reservation_limits(
                args.project and lookup.project_id(self, args.project)), args)
        except sdk_exc.InvalidRequest:
            raise exceptions.CommandError(
                'Name the project: that of the token is not known.') from None


class SetLimits(command.ShowOne):
    """Give a project limits of its own (administrators)

    -1 is no limit. Limits that are not named stay as they are.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('project', metavar='<project>',
                            help='Name or id')
        parser.add_argument(
            '--max-reservations', metavar='<number>', type=values.limit,
            help='How many reservations it may have at a time')
        parser.add_argument(
            '--max-hosts', metavar='<number>', type=values.limit,
            help='How many hosts it may have reserved at any one time')
        parser.add_argument(
            '--max-duration', metavar='<duration>', type=values.limit_s,
            help='How long a reservation may last: seconds, or like 2d')
        parser.add_argument(
            '--max-advance', metavar='<duration>', type=values.limit_s,
            help='How far ahead one may start: seconds, or like 90d')
        parser.add_argument(
            '--max-per-day', metavar='<number>', type=values.limit,
            help='How many reservations it may make within 24 hours')
        return parser

    def take_action(self, args):
        client = common.client(self)
        wanted = common.given(
            max_created_per_day=args.max_per_day,
            max_reservations=args.max_reservations,
            max_hosts=args.max_hosts, max_duration_s=args.max_duration,
            max_advance_s=args.max_advance)
        if not wanted:
            raise exceptions.CommandError('There is nothing to change.')
        project_id = lookup.project_id(self, args.project)
        own = client.get_reservation_limits(project_id).own
        return common.shown(client.set_reservation_limits(
            project_id, **{**own, **wanted}), args)


class UnsetLimits(command.Command):
    """Take a project's own limits from it (administrators)"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('project', metavar='<project>',
                            help='Name or id')
        return parser

    def take_action(self, args):
        common.client(self).delete_reservation_limits(
            lookup.project_id(self, args.project), ignore_missing=False)
