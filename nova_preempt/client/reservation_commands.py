# SPDX-License-Identifier: Apache-2.0
"""openstack reservation create, list, show, set, delete, preview.

Times are UTC, as the API has them.
"""


from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import name_lookup
from nova_preempt.client import progress
from nova_preempt.client import sentences

# Options of both create and preview.
_REQUEST = (
    base.option(
        '--host-properties', metavar='<filter>', type=argtypes.host_properties,
        help='Filter of hosts: JSON such as \'[">=", "$vcpus", 8]\', or '
             '@<file>; see "openstack reservation property list" (default: '
             'any host)'),
    base.option(
        '--quantity', metavar='<number>', type=argtypes.quantity, default=1,
        help='Number of hosts (default: 1)'),
    base.option(
        '--duration', metavar='<duration>', type=argtypes.duration_s,
        help='Duration: seconds, or like 90m, 4h, 2d or 1h30m (default: '
             'from --start to --end)'),
    base.option(
        '--start', metavar='<time>', type=argtypes.time,
        help=f'Earliest start (default: now; {base.TIME})'),
    base.option(
        '--end', metavar='<time>', type=argtypes.time,
        help='Latest end (default: none; without --start and --end the '
             f'reservation starts now; {base.TIME})'))

# Options of both create and set.
_CHANGES = (
    base.option('--name', metavar='<name>', help='Name of the reservation'),
    base.option(
        '--end-action', choices=['shelve', 'delete'],
        help='Action on the servers of the reservation at its end'),
    base.option(
        '--before-end', metavar='<duration>', type=argtypes.duration_s,
        help='Notice before the end: seconds, or like 90m'))


def _requested(args):
    return base.given(
        host_properties=args.host_properties, quantity=args.quantity,
        duration=args.duration, start_time=args.start, end_time=args.end)


def _changes(args):
    return base.given(name=args.name, end_action=args.end_action,
                      before_end_s=args.before_end)


def _reservation(**more):
    return base.option('reservation', metavar='<reservation>',
                       help='Reservation (id or name)', **more)


def _id(client, name):
    return name_lookup.id_by(client.find_reservation, 'reservation', name)


class CreateReservation(base.ShowCommand):
    """Reserve whole hosts at the earliest possible time"""

    options = (*_REQUEST, *_CHANGES, progress.WAIT)
    why = sentences.reservation

    def ask(self, client, args):
        made = client.create_reservation(**_requested(args), **_changes(args))
        return progress.wait(
            self, lambda: client.get_reservation(made.id),
            sentences.reservation, lambda item: item.ready_at,
            progress.until('ended', 'cancelled', 'error'),
        ) if args.wait else made


class PreviewReservation(base.ShowCommand):
    """Show when and where hosts could be reserved, without reserving them"""

    options = _REQUEST
    why = sentences.reservation_preview

    def ask(self, client, args):
        return client.preview_reservation(**_requested(args))


class ListReservations(base.ProjectListCommand):
    """List reservations, newest first"""

    call = 'reservations'
    empty = 'This project has reserved no hosts.'
    same = ('status', 'name', 'since', 'until', 'host')
    options = (
        base.option('--status', metavar='<status>',
                    choices=argtypes.RESERVATION_STATUSES,
                    help=', '.join(argtypes.RESERVATION_STATUSES)),
        base.option('--name', metavar='<name>',
                    help='List reservations of this name'),
        base.option('--since', metavar='<time>', type=argtypes.time,
                    help=f'List reservations that end later ({base.TIME})'),
        base.option('--until', metavar='<time>', type=argtypes.time,
                    help=f'List those that start earlier ({base.TIME})'),
        base.option('--host', metavar='<host>',
                    help='List those with this host (administrators)'),
        *base.of_projects('reservation'))
    columns = {'ID': 'id', 'Name': 'name', 'Status': 'status',
               'Start': 'start_at', 'End': 'end_at', 'Quantity': 'quantity'}
    more_columns = {
        'Hosts': base.each('hosts', 'name'),
        'Host Properties': lambda item: base.JsonColumn(
            item['host_properties']),
        'End Action': 'end_action', 'Project': 'project_id',
        'Reason': 'reason'}


class ShowReservation(base.ShowCommand):
    """Show a reservation with its hosts"""

    options = (_reservation(),)
    why = sentences.reservation

    def ask(self, client, args):
        return client.get_reservation(_id(client, args.reservation))


class SetReservation(base.ActionCommand):
    """Change a reservation or its end"""

    options = (
        _reservation(), *_CHANGES,
        base.option('--end', metavar='<time>', type=argtypes.time,
                    help=f'New end ({base.TIME})'))

    def act(self, client, args):
        changes = base.required(
            {**_changes(args), **base.given(end_at=args.end)})
        client.update_reservation(_id(client, args.reservation), **changes)


class DeleteReservations(base.ActionCommand):
    """Cancel reservations; an active reservation ends now"""

    options = (_reservation(nargs='+'), progress.WAIT)

    def act(self, client, args):
        def delete(name):
            uuid = _id(client, name)
            client.delete_reservation(uuid, ignore_missing=False)
            if args.wait:
                progress.wait(
                    self, lambda: client.get_reservation(uuid),
                    sentences.reservation, lambda item: item.released_at
                    or item.status == 'cancelled', progress.until('error'))

        self.act_on_each(args.reservation, 'reservations', delete)
