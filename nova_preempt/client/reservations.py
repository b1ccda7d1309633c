# SPDX-License-Identifier: Apache-2.0
"""openstack reservation create, list, show, set, delete, preview.

Times are UTC, as the API has them.
"""

from osc_lib import exceptions

from nova_preempt.client import common
from nova_preempt.client import lookup
from nova_preempt.client import values

# What both a reservation and a preview are asked with.
_REQUEST = (
    common.option(
        '--host-properties', metavar='<filter>', type=values.host_properties,
        help='Which hosts: JSON such as \'[">=", "$vcpus", 8]\', or @<file> '
             'with it; see "openstack reservation property list" '
             '(default: any)'),
    common.option(
        '--quantity', metavar='<number>', type=values.quantity, default=1,
        help='How many hosts (default: 1)'),
    common.option(
        '--duration', metavar='<duration>', type=values.duration_s,
        help='For how long: seconds, or like 90m, 4h, 2d or 1h30m (default: '
             'from --start to --end)'),
    common.option(
        '--start', metavar='<time>', type=values.time,
        help=f'Not earlier than this (default: now; {common.TIME})'),
    common.option(
        '--end', metavar='<time>', type=values.time,
        help='Over by this (default: any, but with neither --start nor '
             f'--end it starts now; {common.TIME})'))

# What can be said at first and changed later.
_CHANGES = (
    common.option('--name', metavar='<name>'),
    common.option(
        '--end-action', choices=['shelve', 'delete'],
        help='What happens at the end to the servers that run in it'),
    common.option(
        '--before-end', metavar='<duration>', type=values.duration_s,
        help='How long before the end there is notice: seconds, or like 90m'))


def _requested(args):
    return common.given(
        host_properties=args.host_properties, quantity=args.quantity,
        duration=args.duration, start_time=args.start, end_time=args.end)


def _changes(args):
    return common.given(name=args.name, end_action=args.end_action,
                        before_end_s=args.before_end)


def _reservation(**more):
    return common.option('reservation', metavar='<reservation>',
                         help='Id or name', **more)


def _id(client, name):
    return lookup.id_by(client.find_reservation, 'reservation', name)


class CreateReservation(common.Show):
    """Reserve whole hosts, at the earliest time that is possible"""

    options = (*_REQUEST, *_CHANGES)

    def ask(self, client, args):
        return client.create_reservation(**_requested(args), **_changes(args))


class PreviewReservation(common.Show):
    """Ask when and where hosts could be reserved; none are"""

    options = _REQUEST

    def ask(self, client, args):
        return client.preview_reservation(**_requested(args))


class ListReservations(common.ListOfProjects):
    """List reservations, newest first"""

    call = 'reservations'
    same = ('status', 'name', 'since', 'until', 'host')
    options = (
        common.option('--status', metavar='<status>',
                      choices=values.RESERVATION_STATUSES,
                      help='pending, active, degraded, ended, cancelled or '
                           'error'),
        common.option('--name', metavar='<name>'),
        common.option('--since', metavar='<time>', type=values.time,
                      help=f'That end after this ({common.TIME})'),
        common.option('--until', metavar='<time>', type=values.time,
                      help=f'That start before this ({common.TIME})'),
        common.option('--host', metavar='<host>',
                      help='With this host (administrators)'),
        *common.of_projects('reservation'))
    columns = {'ID': 'id', 'Name': 'name', 'Status': 'status',
               'Start': 'start_at', 'End': 'end_at', 'Quantity': 'quantity'}
    more_columns = {
        'Hosts': common.each('hosts', 'name'),
        'Host Properties': lambda item: common.Json(item['host_properties']),
        'End Action': 'end_action', 'Project': 'project_id',
        'Reason': 'reason'}


class ShowReservation(common.Show):
    """Show a reservation with its hosts"""

    options = (_reservation(),)

    def ask(self, client, args):
        return client.get_reservation(_id(client, args.reservation))


class SetReservation(common.Show):
    """Change a reservation, or let it end earlier or later"""

    options = (
        _reservation(), *_CHANGES,
        common.option('--end', metavar='<time>', type=values.time,
                      help=f'When it ends ({common.TIME})'))

    def ask(self, client, args):
        changes = {**_changes(args), **common.given(end_at=args.end)}
        if not changes:
            raise exceptions.CommandError('There is nothing to change.')
        return client.update_reservation(
            _id(client, args.reservation), **changes)


class DeleteReservations(common.Command):
    """Cancel reservations; one that is under way ends now"""

    options = (_reservation(nargs='+'),)

    def act(self, client, args):
        self.act_on_each(
            args.reservation, 'reservations',
            lambda name: client.delete_reservation(
                _id(client, name), ignore_missing=False))
