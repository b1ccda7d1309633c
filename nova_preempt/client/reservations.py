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
"""openstack reservation create, list, show, set, delete, preview.

Times are UTC, as the API has them.
"""

import logging

from openstack import exceptions as sdk_exc
from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_preempt.client import common
from nova_preempt.client import lookup
from nova_preempt.client import values

LOG = logging.getLogger(__name__)

_TIME = 'ISO 8601, UTC without an offset'


def _add_request(parser):
    """What both a reservation and a preview are asked with."""
    parser.add_argument(
        '--host-properties', metavar='<filter>', type=values.host_properties,
        help='Which hosts: JSON such as \'[">=", "$vcpus", 8]\', or @<file> '
             'with it; see "openstack reservation property list" '
             '(default: any)')
    parser.add_argument(
        '--quantity', metavar='<number>', type=values.quantity, default=1,
        help='How many hosts (default: 1)')
    parser.add_argument(
        '--duration', metavar='<duration>', type=values.duration_s,
        help='For how long: seconds, or like 90m, 4h, 2d or 1h30m (default: '
             'from --start to --end)')
    parser.add_argument(
        '--start', metavar='<time>', type=values.time,
        help=f'Not earlier than this (default: now; {_TIME})')
    parser.add_argument(
        '--end', metavar='<time>', type=values.time,
        help=f'Over by this (default: any, but with neither --start nor '
             f'--end it starts now; {_TIME})')


def _requested(args):
    return common.given(
        host_properties=args.host_properties, quantity=args.quantity,
        duration=args.duration, start_time=args.start, end_time=args.end)


def _add_changes(parser):
    """What can be said at first and changed later."""
    parser.add_argument('--name', metavar='<name>')
    parser.add_argument(
        '--end-action', choices=['shelve', 'delete'],
        help='What happens at the end to the servers that run in it')
    parser.add_argument(
        '--before-end', metavar='<duration>', type=values.duration_s,
        help='How long before the end there is notice: seconds, or like 90m')


def _changes(args):
    return common.given(name=args.name, end_action=args.end_action,
                        before_end_s=args.before_end)


def _add_reservation(parser, **more):
    parser.add_argument('reservation', metavar='<reservation>',
                        help='Id or name', **more)


def _find(client, name):
    """The id of what is named by its id or its name."""
    if lookup.is_uuid(name):
        return name
    try:
        found = client.find_reservation(name)
    except sdk_exc.DuplicateResource:
        raise exceptions.CommandError(
            f'There is more than one reservation {name!r}; take its '
            'id.') from None
    if found is None:
        raise exceptions.CommandError(f'There is no reservation {name!r}.')
    return found.id


class CreateReservation(command.ShowOne):
    """Reserve whole hosts, at the earliest time that is possible"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_request(parser)
        _add_changes(parser)
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).create_reservation(
            **_requested(args), **_changes(args)), args)


class PreviewReservation(command.ShowOne):
    """Ask when and where hosts could be reserved; none are"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_request(parser)
        return parser

    def take_action(self, args):
        return common.shown(common.client(self).preview_reservation(
            **_requested(args)), args)


class ListReservations(command.Lister):
    """List reservations, newest first"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--status', metavar='<status>',
                            choices=values.RESERVATION_STATUSES,
                            help='pending, active, degraded, ended, '
                                 'cancelled or error')
        parser.add_argument('--name', metavar='<name>')
        parser.add_argument('--since', metavar='<time>', type=values.time,
                            help=f'That end after this ({_TIME})')
        parser.add_argument('--until', metavar='<time>', type=values.time,
                            help=f'That start before this ({_TIME})')
        parser.add_argument('--host', metavar='<host>',
                            help='With this host (administrators)')
        parser.add_argument('--project', metavar='<project>',
                            help='Of this project (name or id; '
                                 'administrators)')
        parser.add_argument('--all-projects', action='store_true',
                            help='Of all projects (administrators)')
        common.add_limit(parser)
        parser.add_argument('--marker', metavar='<reservation-id>',
                            help='Those after this one')
        parser.add_argument('--long', action='store_true',
                            help='More columns')
        return parser

    def take_action(self, args):
        client = common.client(self)
        found = list(client.reservations(
            max_items=args.limit, status=args.status, name=args.name,
            since=args.since, until=args.until, host=args.host,
            project_id=args.project and lookup.project_id(self, args.project),
            all_projects=args.all_projects or None, marker=args.marker))
        if args.host and not found:
            lookup.check_host(client, args.host)
        common.tell_of_others(
            self, args, found,
            lambda: client.reservations(max_items=1, all_projects=True))
        names = ['ID', 'Name', 'Status', 'Start', 'End', 'Quantity']
        if args.long:
            names += ['Hosts', 'Host Properties', 'End Action', 'Project',
                      'Reason']
        return names, (tuple(_row(item)[name] for name in names)
                       for item in found)


def _row(item):
    return {
        'ID': item['id'],
        'Name': item['name'],
        'Status': item['status'],
        'Start': item['start_at'],
        'End': item['end_at'],
        'Quantity': item['quantity'],
        'Hosts': format_columns.ListColumn(
            [host['name'] for host in item['hosts']]),
        'Host Properties': common.Json(item['host_properties']),
        'End Action': item['end_action'],
        'Project': item['project_id'],
        'Reason': item['reason'],
    }


class ShowReservation(command.ShowOne):
    """Show a reservation with its hosts"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_reservation(parser)
        return parser

    def take_action(self, args):
        client = common.client(self)
        return common.shown(client.get_reservation(
            _find(client, args.reservation)), args)


class SetReservation(command.ShowOne):
    """Change a reservation, or let it end earlier or later"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_reservation(parser)
        _add_changes(parser)
        parser.add_argument('--end', metavar='<time>', type=values.time,
                            help=f'When it ends ({_TIME})')
        return parser

    def take_action(self, args):
        client = common.client(self)
        changes = {**_changes(args), **common.given(end_at=args.end)}
        if not changes:
            raise exceptions.CommandError('There is nothing to change.')
        return common.shown(client.update_reservation(
            _find(client, args.reservation), **changes), args)


class DeleteReservations(command.Command):
    """Cancel reservations; one that is under way ends now"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_reservation(parser, nargs='+')
        return parser

    def take_action(self, args):
        client = common.client(self)
        failed = 0
        for name in args.reservation:
            try:
                client.delete_reservation(_find(client, name),
                                          ignore_missing=False)
            except Exception as exc:  # noqa: BLE001 - the others have a turn
                LOG.error('%s: %s', name, exc)
                failed += 1
        if failed:
            raise exceptions.CommandError(
                f'{failed} of {len(args.reservation)} reservations were not '
                'cancelled.')
