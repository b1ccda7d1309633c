# SPDX-License-Identifier: Apache-2.0

"""openstack backlog request create, list, show, set, delete, and more.

Times are UTC, as the API has them.
"""

import argparse
import itertools
import logging

from osc_lib import exceptions
from osc_lib.cli import format_columns

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import boot_body
from nova_preempt.client import name_lookup
from nova_preempt.client import plot
from nova_preempt.client import progress
from nova_preempt.client import sentences

LOG = logging.getLogger(__name__)

_PRIORITIES = ('time', 'reputation', 'cores', 'redundancy')
# Fields that --unset clears: {argument: field}.
_UNSET = {'class': 'class_name', 'priorities': 'priorities',
          'not-before': 'not_before', 'not-after': 'not_after',
          'longest-wait': 'longest_wait_s', 'back-until': 'back_until',
          'most-returns': 'most_returns'}


def _priority(text):
    name, value = boot_body.pair(text)
    if name not in _PRIORITIES or value not in ('1', '2', '3'):
        raise argparse.ArgumentTypeError(
            f'{text!r} must be {"|".join(_PRIORITIES)}=1|2|3')
    return name, int(value)


# Options of both create and set.
_WISHES = (
    base.option('--count', metavar='<number>', type=argtypes.quantity,
                help='Number of servers (default: 1)'),
    base.option(
        '--least-count', metavar='<number>', type=argtypes.quantity,
        help='Minimum number of servers that start together (default: all)'),
    base.option('--class', metavar='<class>', dest='class_name',
                help='Class of service'),
    base.option(
        '--priority', metavar='<name=1..3>', action='append', type=_priority,
        help=f'{", ".join(_PRIORITIES)}: 1 is best effort, 2 advanced, 3 '
             'premium; may be repeated'),
    base.option('--not-before', metavar='<time>', type=argtypes.time,
                help=f'Earliest start ({base.TIME})'),
    base.option('--not-after', metavar='<time>', type=argtypes.time,
                help=f'Latest start ({base.TIME})'),
    base.option(
        '--longest-wait', metavar='<duration>', type=argtypes.duration_s,
        help='Maximum wait: seconds, or like 90m, 4h, 2d'),
    base.option(
        '--comes-back', action=argparse.BooleanOptionalAction, default=None,
        help='Let the request wait again after an eviction (default: no)'),
    base.option('--back-until', metavar='<time>', type=argtypes.time,
                help=f'Latest time to wait again ({base.TIME})'),
    base.option(
        '--most-returns', metavar='<number>', type=argtypes.quantity,
        help='Maximum number of times to wait again'))


def _wishes(args):
    return base.given(
        count=args.count, least_count=args.least_count,
        class_name=args.class_name,
        priorities=args.priority and dict(args.priority),
        not_before=args.not_before, not_after=args.not_after,
        longest_wait_s=args.longest_wait, comes_back=args.comes_back,
        back_until=args.back_until, most_returns=args.most_returns)


def _request(**more):
    return base.option('request', metavar='<request>',
                       help='Request (id or name)', **more)


def _id(client, name):
    return name_lookup.id_by(client.find_backlog_request, 'request', name)


class CreateRequest(base.ShowCommand):
    """Create a request for servers that start when there is capacity"""

    options = (
        base.option('name', metavar='<name>', nargs='?',
                    help='Name of the request and its servers'),
        base.option(
            '--flavor', metavar='<flavor>', action='append',
            help='Flavor (name or id); repeat it for alternatives, in order '
                 'of preference'),
        base.option(
            '--ladder', metavar='<ladder>',
            help='Ladder of flavors from which the service chooses by '
                 '--priority, instead of --flavor and --count'),
        boot_body.add,
        base.option(
            '--compute-version', metavar='<version>',
            help='Microversion of Nova for the body'),
        *_WISHES, progress.WAIT)
    why = sentences.backlog_request

    def ask(self, client, args):
        if args.body is None:
            for name, found in (('name', args.name),
                                ('flavor', args.flavor or args.ladder)):
                if not found:
                    raise exceptions.CommandError(
                        f'A {name} is required, unless --body is given.')
        flavors = args.flavor and [name_lookup.flavor_id(self, name)
                                   for name in args.flavor]
        made = client.create_backlog_request(
            body=boot_body.make(self, args), **base.given(
                name=args.name, flavors=flavors, ladder=args.ladder,
                compute_version=args.compute_version), **_wishes(args))
        return progress.wait(
            self, lambda: client.get_backlog_request(made.id),
            sentences.backlog_request, progress.until('active', 'done'),
            progress.until('failed', 'cancelled', 'expired'),
        ) if args.wait else made


class ListRequests(base.ProjectListCommand):
    """List requests for servers, newest first"""

    call = 'backlog_requests'
    empty = 'No request for servers has been created in this project.'
    same = ('status',)
    options = (
        base.option('--status', metavar='<status>',
                    choices=argtypes.REQUEST_STATUSES,
                    help=', '.join(argtypes.REQUEST_STATUSES)),
        base.option('--user', metavar='<user>',
                    help='List requests of this user (name or id)'),
        *base.of_projects('request'))
    columns = {
        'ID': 'id', 'Name': 'name', 'Status': 'status', 'Count': 'count',
        'Position': 'position',
        'Estimate (s)': 'estimate_s'}
    more_columns = {
        'Flavors': base.each('flavors', 'name'), 'Class': 'class_name',
        'Created At': 'created_at',
        'Waits For': lambda item: item['waits_for'].get('text', ''),
        'Servers': base.each('servers', 'id'), 'Project': 'project_id',
        'User': 'user_id', 'Reason': 'reason'}

    def query(self, args):
        return {'user_id': args.user and name_lookup.user_id(self, args.user)}


class ShowRequest(base.ShowCommand):
    """Show a request with its servers and the reason why it waits"""

    options = (_request(),)
    why = sentences.backlog_request

    def ask(self, client, args):
        return client.get_backlog_request(_id(client, args.request))


class SetRequest(base.ActionCommand):
    """Change an open request"""

    options = (
        _request(), base.option('--name', metavar='<name>',
                                help='New name of the request'), *_WISHES,
        base.option(
            '--unset', metavar='<what>', action='append', choices=_UNSET,
            help=f'Clear one of {", ".join(_UNSET)}; may be repeated'))

    def act(self, client, args):
        changes = {**base.given(name=args.name), **_wishes(args)}
        for name in args.unset or ():
            changes[_UNSET[name]] = '' if name == 'class' else None
        base.required(changes)
        client.update_backlog_request(_id(client, args.request), **changes)


class CancelRequests(base.ActionCommand):
    """Cancel requests; keep their servers unless --servers is given"""

    options = (_request(nargs='+'), base.option(
        '--servers', action='store_true', help='Delete their servers as well'))

    def act(self, client, args):
        self.act_on_each(
            args.request, 'requests',
            lambda name: client.cancel_backlog_request(
                _id(client, name), servers=args.servers, ignore_missing=False))


class ShowStatistics(base.ListCommand):
    """Show numbers and waiting times of requests by class"""

    options = (base.option(
        '--hours', metavar='<number>', type=argtypes.quantity,
        help='Hours of the past to evaluate (default: 24)'),)
    columns = {
        'Class': 'class', 'Requests': 'requests',
        'By Status': lambda item: format_columns.DictColumn(
            item['requests_by_status']),
        'Started': 'started', 'Started per Hour': 'started_per_hour',
        'Median Wait (s)': 'median_wait_s',
        '95% Wait (s)': 'p95_wait_s'}
    empty = 'There are no requests.'

    def ask(self, client, args):
        found = client.get_backlog_statistics(**base.given(hours=args.hours))
        return [{**found.total, 'class': '(all)'}, *found.classes]


class ReportRunTimes(base.ReportCommand):
    """Show the availability of the requests of each class over time"""

    draw = plot.draw_availability

    def report(self, client, **query):
        found = client.get_backlog_report(**query)
        # By default from the first request on, if that came within the usual
        # period: each point stands for a hundredth of the period.
        nothing = [list(itertools.takewhile(
            lambda point: point['availability'] is None, item['series']))
            for item in found.answer()['classes']]
        if 'since' in query or not nothing or not all(nothing):
            return found
        return client.get_backlog_report(**query, since=min(
            points[-1]['time'] for points in nothing))

    def with_series(self, found):
        return found['classes']


class ListServiceClasses(base.ListCommand):
    """List the classes of service, the most important first"""

    columns = {
        'Name': 'name', 'Importance': 'importance',
        'Availability': 'availability',
        'Safety Margin (s)': 'safety_margin_s',
        'Overhead Limit': 'overhead_limit', 'Least Run (s)': 'least_run_s',
        'Open': 'open'}
    empty = 'The operator has configured no classes of service.'

    def ask(self, client, args):
        return client.backlog_classes()


class ShowDispatchPlan(base.ListCommand):
    """Show which requests would start now, and on which hosts"""

    options = (
        base.option('--hosts', action='store_true',
                    help='Show the use of each host before and after'),
        base.option(
            '--plot', metavar='<file>', type=plot.path,
            help='Draw the plan into this .svg or .png file; needs matplotlib '
                 '(pip install nova-preempt[report])'))
    columns = {
        'Request': 'request_id', 'Name': 'name', 'Project': 'project_id',
        'Flavor': 'flavor', 'Count': 'count',
        'Hosts': lambda item: format_columns.DictColumn({
            host['name']: host['count'] for host in item['hosts']}),
        'Why Nova Chooses': 'reason'}
    empty = 'No request waits that could start now.'

    def ask(self, client, args):
        found = client.get_backlog_plan()
        if found.stopped:
            LOG.warning('No request is started: %s', found.stopped)
        if args.plot:
            base.drawn(plot.draw_plan, found.answer(), args.plot)
        if not args.hosts:
            return found.starts
        self.columns = {
            'Host': 'host', 'Resource Class': 'name', 'Capacity': 'capacity',
            'Used': 'used', 'Used After': 'used_after'}
        return [{'host': host['name'], 'name': name, **use}
                for host in found.hosts
                for name, use in sorted(host['resources'].items())]
