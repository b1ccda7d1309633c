# SPDX-License-Identifier: Apache-2.0
"""openstack reservation host, property and limits: what can be reserved."""

from openstack import exceptions as sdk_exc
from osc_lib import exceptions
from osc_lib.cli import format_columns

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import name_lookup
from nova_preempt.client import sentences

_HOST = base.option('host', metavar='<host>', help='Name of the host')
_PROJECT = base.option('project', metavar='<project>',
                       help='Project (name or id)')


class ListHosts(base.ListCommand):
    """List hosts and their reservations (administrators)"""

    options = (base.LIMIT, base.option(
        '--marker', metavar='<host>', help='Last host of the previous page'))
    columns = {
        'Name': 'name', 'Reservable': 'reservable', 'State': 'state',
        'Status': 'status', 'Vacant': 'vacant',
        'Reservations': lambda item: format_columns.ListColumn([
            f'{its["start_at"]}/{its["end_at"]}'
            for its in item['reservations']])}
    more_columns = {
        'Servers': 'running_servers',
        'FLOPS per Watt': 'flops_per_watt',
        'Properties': lambda item: base.JsonColumn(item['properties'])}
    empty = 'Nova has no compute host, or none after --marker.'

    def ask(self, client, args):
        return client.hosts(max_items=args.limit, marker=args.marker)


class ShowHost(base.ShowCommand):
    """Show a host, its properties and reservations (administrators)"""

    options = (_HOST,)
    why = sentences.reservable_host

    def ask(self, client, args):
        return client.get_host(args.host)


class SetHost(base.ActionCommand):
    """Set whether a host is reservable, and properties (administrators)"""

    options = (
        _HOST,
        base.one_of(
            base.option('--reservable', dest='reservable',
                        action='store_const', const=True,
                        help='Allow reservations of the host'),
            base.option('--not-reservable', dest='reservable',
                        action='store_const', const=False,
                        help='Allow no new reservations of the host'),
            base.option('--default-reservable', action='store_true',
                        help='Use [reservation]reservable_default')),
        base.option(
            '--property', metavar='<name>=<value>', action='append',
            default=[], type=argtypes.host_property,
            help='Set an extra property; a list in JSON (may be repeated)'),
        base.option(
            '--unset-property', metavar='<name>', action='append',
            default=[], help='Unset an extra property (may be repeated)'))

    def act(self, client, args):
        changes = {}
        if args.default_reservable or args.reservable is not None:
            changes['reservable'] = args.reservable
        extra = {**dict(args.property),
                 **dict.fromkeys(args.unset_property)}
        if extra:
            changes['extra'] = extra
        client.update_host(args.host, **base.required(changes))


class ListHostProperties(base.ListCommand):
    """List the host properties that reservations can request"""

    columns = {
        'Name': 'name', 'Type': 'type',
        'Values': lambda item: format_columns.ListColumn(
            list(map(str, item.known_values))),
        'Hidden': 'hidden'}
    empty = 'No host can be reserved, or all its properties are hidden.'

    def ask(self, client, args):
        return client.properties()


class SetPropertyVisibility(base.ActionCommand):
    """Hide a property of hosts from users, or show it (administrators)"""

    options = (
        base.option('property', metavar='<property>',
                    help='Name of the property'),
        base.one_of(
            base.option('--hidden', dest='hidden', action='store_const',
                        const=True, help='Hide it from users'),
            base.option('--visible', dest='hidden', action='store_const',
                        const=False, help='Show it to users'), required=True))

    def act(self, client, args):
        client.update_property(args.property, hidden=args.hidden)


class ShowProjectLimits(base.ShowCommand):
    """Show how much a project may reserve"""

    options = (base.option(
        'project', metavar='<project>', nargs='?',
        help='Project (name or id; administrators; default: your own)'),)
    why = sentences.reservation_limits

    def ask(self, client, args):
        try:
            return client.get_reservation_limits(
                args.project and name_lookup.project_id(self, args.project))
        except sdk_exc.InvalidRequest:
            raise exceptions.CommandError(
                'Name a project, since your token has none.') from None


class SetProjectLimits(base.ActionCommand):
    """Set the limits of a project (administrators)

    -1 is no limit. Limits that are not given do not change.
    """

    options = (
        _PROJECT,
        base.option(
            '--max-reservations', metavar='<number>', type=argtypes.limit,
            help='Maximum number of open reservations'),
        base.option(
            '--max-hosts', metavar='<number>', type=argtypes.limit,
            help='Maximum number of hosts reserved at the same time'),
        base.option(
            '--max-duration', metavar='<duration>', type=argtypes.limit_s,
            help='Maximum duration of a reservation: seconds, or like 2d'),
        base.option(
            '--max-advance', metavar='<duration>', type=argtypes.limit_s,
            help='Latest start of a reservation: seconds from now, or like '
                 '90d'),
        base.option(
            '--max-per-day', metavar='<number>', type=argtypes.limit,
            help='Maximum number of reservations created within 24 hours'))

    def act(self, client, args):
        wanted = base.required(base.given(
            max_created_per_day=args.max_per_day,
            max_reservations=args.max_reservations,
            max_hosts=args.max_hosts, max_duration_s=args.max_duration,
            max_advance_s=args.max_advance))
        project_id = name_lookup.project_id(self, args.project)
        own = client.get_reservation_limits(project_id).own
        client.set_reservation_limits(project_id, **{**own, **wanted})


class UnsetProjectLimits(base.ActionCommand):
    """Unset the limits of a project (administrators)"""

    options = (_PROJECT,)

    def act(self, client, args):
        client.delete_reservation_limits(
            name_lookup.project_id(self, args.project), ignore_missing=False)
