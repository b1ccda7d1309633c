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

"""openstack backlog request create, list, show, set, cancel; stats, report.

Times are UTC, as the API has them.
"""

import argparse
import logging

from openstack import exceptions as sdk_exc
from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_preempt.client import boot_body
from nova_preempt.client import common
from nova_preempt.client import lookup
from nova_preempt.client import plot
from nova_preempt.client import values

LOG = logging.getLogger(__name__)

_TIME = 'ISO 8601, UTC without an offset'
_PRIORITIES = ('time', 'reputation', 'cores', 'redundancy')
# What can be taken from a request again: {argument: field}.
_UNSET = {'class': 'class_name', 'priorities': 'priorities',
          'not-before': 'not_before', 'not-after': 'not_after',
          'longest-wait': 'longest_wait_s', 'back-until': 'back_until',
          'most-returns': 'most_returns'}


def _add_wishes(parser):
    """What can be said at first and changed later."""
    parser.add_argument('--count', metavar='<number>', type=values.quantity,
                        help='How many servers (default: 1)')
    parser.add_argument(
        '--least-count', metavar='<number>', type=values.quantity,
        help='So many start together, or none does (default: all)')
    parser.add_argument('--class', metavar='<class>', dest='class_name',
                        help='Of service')
    parser.add_argument(
        '--priority', metavar='<name=1..3>', action='append', type=_priority,
        help=f'{", ".join(_PRIORITIES)}: 1 is best effort, 2 advanced, 3 '
             'premium; may be given several times')
    parser.add_argument('--not-before', metavar='<time>', type=values.time,
                        help=f'It is not started earlier ({_TIME})')
    parser.add_argument('--not-after', metavar='<time>', type=values.time,
                        help=f'It is not started later ({_TIME})')
    parser.add_argument(
        '--longest-wait', metavar='<duration>', type=values.duration_s,
        help='For how long it waits at most: seconds, or like 90m, 4h, 2d')
    parser.add_argument(
        '--comes-back', action=argparse.BooleanOptionalAction, default=None,
        help='Whether it waits again once it was evicted (default: no)')
    parser.add_argument('--back-until', metavar='<time>', type=values.time,
                        help=f'It does not come back later ({_TIME})')
    parser.add_argument(
        '--most-returns', metavar='<number>', type=values.quantity,
        help='How often it comes back at most')


def _priority(text):
    name, value = boot_body.pair(text)
    if name not in _PRIORITIES or value not in ('1', '2', '3'):
        raise argparse.ArgumentTypeError(
            f'{text!r} is none of {", ".join(_PRIORITIES)} with 1, 2 or 3')
    return name, int(value)


def _wishes(args):
    return common.given(
        count=args.count, least_count=args.least_count,
        class_name=args.class_name,
        priorities=args.priority and dict(args.priority),
        not_before=args.not_before, not_after=args.not_after,
        longest_wait_s=args.longest_wait, comes_back=args.comes_back,
        back_until=args.back_until, most_returns=args.most_returns)


def _add_request(parser, **more):
    parser.add_argument('request', metavar='<request>', help='Id or name',
                        **more)


def _find(client, name):
    """The id of what is named by its id or its name."""
    if lookup.is_uuid(name):
        return name
    try:
        found = client.find_backlog_request(name)
    except sdk_exc.DuplicateResource:
        raise exceptions.CommandError(
            f'There is more than one request {name!r}; take its '
            'id.') from None
    if found is None:
        raise exceptions.CommandError(f'There is no request {name!r}.')
    return found.id


class CreateRequest(command.ShowOne):
    """Leave a request for servers that start when there is room"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='<name>', nargs='?',
                            help='Of the request and its servers')
        parser.add_argument(
            '--flavor', metavar='<flavor>', action='append',
            help='Name or id; several are alternatives, in order of '
                 'preference')
        parser.add_argument(
            '--ladder', metavar='<ladder>',
            help='In place of --flavor and --count: flavors from which the '
                 'service chooses by --priority')
        boot_body.add(parser)
        parser.add_argument(
            '--compute-version', metavar='<version>',
            help='The microversion of Nova that the body is for')
        _add_wishes(parser)
        return parser

    def take_action(self, args):
        if args.body is None:
            for name, found in (('name', args.name),
                                ('flavor', args.flavor or args.ladder)):
                if not found:
                    raise exceptions.CommandError(
                        f'Without --body there must be a {name}.')
        flavors = args.flavor and [lookup.flavor_id(self, name)
                                   for name in args.flavor]
        return common.shown(common.client(self).create_backlog_request(
            body=boot_body.make(self, args), **common.given(
                name=args.name, flavors=flavors, ladder=args.ladder,
                compute_version=args.compute_version), **_wishes(args)),
            args)


class ListRequests(command.Lister):
    """List requests for servers, newest first"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--status', metavar='<status>',
                            choices=values.REQUEST_STATUSES,
                            help=', '.join(values.REQUEST_STATUSES))
        parser.add_argument('--user', metavar='<user-id>',
                            help='Of this user')
        parser.add_argument('--project', metavar='<project>',
                            help='Of this project (name or id; '
                                 'administrators)')
        parser.add_argument('--all-projects', action='store_true',
                            help='Of all projects (administrators)')
        common.add_limit(parser)
        parser.add_argument('--marker', metavar='<request-id>',
                            help='Those after this one')
        parser.add_argument('--long', action='store_true',
                            help='More columns')
        return parser

    def take_action(self, args):
        client = common.client(self)
        found = list(client.backlog_requests(
            max_items=args.limit, status=args.status, user_id=args.user,
            project_id=args.project and lookup.project_id(self, args.project),
            all_projects=args.all_projects or None, marker=args.marker))
        common.tell_of_others(
            self, args, found,
            lambda: client.backlog_requests(max_items=1, all_projects=True))
        names = ['ID', 'Name', 'Status', 'Count', 'Position', 'Estimate (s)']
        if args.long:
            names += ['Flavors', 'Class', 'Created At', 'Waits For',
                      'Servers', 'Project', 'User', 'Reason']
        return names, (tuple(_row(item)[name] for name in names)
                       for item in found)


def _row(item):
    return {
        'ID': item['id'],
        'Name': item['name'],
        'Status': item['status'],
        'Count': item['count'],
        'Position': common.Maybe(item['position']),
        'Estimate (s)': common.Maybe(item['estimate_s']),
        'Flavors': format_columns.ListColumn(
            [flavor['name'] for flavor in item['flavors']]),
        'Class': item['class_name'],
        'Created At': item['created_at'],
        'Waits For': item['waits_for'].get('text', ''),
        'Servers': format_columns.ListColumn(
            [server['id'] for server in item['servers']]),
        'Project': item['project_id'],
        'User': item['user_id'],
        'Reason': item['reason'],
    }


class ShowRequest(command.ShowOne):
    """Show a request with its servers, and why it waits"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_request(parser)
        return parser

    def take_action(self, args):
        client = common.client(self)
        return common.shown(client.get_backlog_request(
            _find(client, args.request)), args)


class SetRequest(command.ShowOne):
    """Change a request that is not over"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_request(parser)
        parser.add_argument('--name', metavar='<name>')
        _add_wishes(parser)
        parser.add_argument(
            '--unset', metavar='<what>', action='append', choices=_UNSET,
            help=f'Take one of these from it: {", ".join(_UNSET)}; may be '
                 'given several times')
        return parser

    def take_action(self, args):
        client = common.client(self)
        changes = {**common.given(name=args.name), **_wishes(args)}
        for name in args.unset or ():
            changes[_UNSET[name]] = '' if name == 'class' else None
        if not changes:
            raise exceptions.CommandError('There is nothing to change.')
        return common.shown(client.update_backlog_request(
            _find(client, args.request), **changes), args)


class CancelRequests(command.Command):
    """Give requests up; what runs stays, unless --servers is given"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_request(parser, nargs='+')
        parser.add_argument('--servers', action='store_true',
                            help='Delete their servers, too')
        return parser

    def take_action(self, args):
        client = common.client(self)
        failed = 0
        for name in args.request:
            try:
                client.cancel_backlog_request(
                    _find(client, name), servers=args.servers,
                    ignore_missing=False)
            except Exception as exc:  # noqa: BLE001 - the others have a turn
                LOG.error('%s: %s', name, exc)
                failed += 1
        if failed:
            raise exceptions.CommandError(
                f'{failed} of {len(args.request)} requests were not '
                'cancelled.')


class ShowStatistics(command.Lister):
    """Show numbers of requests by class, and how long they waited"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--hours', metavar='<number>',
                            type=values.quantity,
                            help='How far back waits count (default: 24)')
        return parser

    def take_action(self, args):
        found = common.client(self).get_backlog_statistics(**common.given(
            hours=args.hours))
        names = ('Class', 'Requests', 'By Status', 'Started',
                 'Started per Hour', 'Median Wait (s)', '95% Wait (s)')
        return names, [
            (name, item['requests'],
             format_columns.DictColumn(item['requests_by_status']),
             item['started'], item['started_per_hour'],
             common.Maybe(item['median_wait_s']),
             common.Maybe(item['p95_wait_s']))
            for name, item in (('(all)', found.total), *(
                (item['class'], item) for item in found.classes))]


class Report(command.ShowOne):
    """Show how much the requests of each class ran over time"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        common.add_interval(parser)
        parser.add_argument(
            '--plot', metavar='<file>', type=plot.path,
            help='Draw it into this file, .svg or .png; needs matplotlib '
                 '(pip install nova-preempt[report])')
        parser.add_argument('--series', action='store_true',
                            help='Show the points, too')
        return parser

    def take_action(self, args):
        found = common.client(self).get_backlog_report(**common.given(
            since=args.since, until=args.until)).answer()
        if args.plot:
            try:
                plot.draw_availability(found, args.plot)
            except (plot.NoPlot, OSError) as exc:
                raise exceptions.CommandError(str(exc)) from None
        if not args.series:
            for item in found['classes']:
                item['points'] = len(item.pop('series'))
        return common.shown(found)


class ListClasses(command.Lister):
    """List the classes of service, the most important first"""

    def take_action(self, args):
        return ('Name', 'Importance', 'Availability', 'Safety Margin (s)',
                'Overhead Limit', 'Least Run (s)', 'Open'), [
            (item.name, item.importance, item.availability,
             item.safety_margin_s, item.overhead_limit, item.least_run_s,
             item.open)
            for item in common.client(self).backlog_classes()]


class ShowPlan(command.Lister):
    """Show which requests would start now, and on which hosts"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--hosts', action='store_true',
                            help='Show what is used of each host before and '
                                 'after')
        parser.add_argument(
            '--plot', metavar='<file>', type=plot.path,
            help='Draw that into this file, .svg or .png; needs matplotlib '
                 '(pip install nova-preempt[report])')
        return parser

    def take_action(self, args):
        found = common.client(self).get_backlog_plan()
        if found.stopped:
            LOG.warning('Nothing is started: %s', found.stopped)
        if args.plot:
            try:
                plot.draw_plan(found.answer(), args.plot)
            except (plot.NoPlot, OSError) as exc:
                raise exceptions.CommandError(str(exc)) from None
        if args.hosts:
            return ('Host', 'Resource Class', 'Capacity', 'Used',
                    'Used After'), [
                (host['name'], name, use['capacity'], use['used'],
                 use['used_after'])
                for host in found.hosts
                for name, use in sorted(host['resources'].items())]
        return ('Request', 'Name', 'Project', 'Flavor', 'Count', 'Hosts',
                'Why Nova Chooses'), [
            (item['request_id'], item['name'], item['project_id'],
             item['flavor'], item['count'], format_columns.DictColumn({
                 host['name']: host['count'] for host in item['hosts']}),
             item.get('reason', ''))
            for item in found.starts]
