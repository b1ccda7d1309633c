# SPDX-License-Identifier: Apache-2.0
"""Base classes of the commands."""

import json
import logging

from cliff import columns
from openstack import resource
from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_preempt.client import argtypes
from nova_preempt.client import name_lookup
from nova_preempt.client import plot

LOG = logging.getLogger(__name__)

TIME = 'ISO 8601, UTC without an offset'


class JsonColumn(columns.FormattableColumn):
    """A nested value, indented in tables."""

    def human_readable(self):
        return json.dumps(self._value, indent=2, sort_keys=True)


class OptionalColumn(columns.FormattableColumn):
    """A value that may be None: empty in tables, null in JSON."""

    def human_readable(self):
        return '' if self._value is None else str(self._value)


def client(command):
    """Return the nova_preempt.sdk.v1 Proxy of a command."""
    return command.app.client_manager.preemption


def given(**values):
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def option(*names, **settings):
    """Return a function that adds an argument to a parser."""
    return lambda parser: parser.add_argument(*names, **settings)


def one_of(*options, required=False):
    """Return a function that adds mutually exclusive arguments."""
    def add(parser):
        group = parser.add_mutually_exclusive_group(required=required)
        for each in options:
            each(group)
    return add


LIMIT = option('--limit', metavar='<number>', type=argtypes.quantity,
               help='Maximum number of items to list')
INTERVAL = (
    option('--since', metavar='<time>', type=argtypes.time,
           help=f'List items from this time on ({TIME})'),
    option('--until', metavar='<time>', type=argtypes.time,
           help=f'List items before this time ({TIME})'))


class CommandWithOptions:
    """A command with declared arguments.

    :cvar options: results of option() and one_of(), in the order of the help
    """

    options = ()

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        for add in self.options:
            add(parser)
        return parser


class ActionCommand(CommandWithOptions, command.Command):
    """A command without output."""

    def take_action(self, args):
        self.act(client(self), args)

    def act_on_each(self, names, kind, act):
        """Call act for each name, and continue after failures.

        :raises CommandError: act has failed for a name
        """
        failed = 0
        for name in names:
            try:
                act(name)
            except Exception as exc:  # noqa: BLE001 - goes on with the next
                LOG.error('Cancelling %s failed: %s', name, exc)
                failed += 1
        if failed:
            raise exceptions.CommandError(
                f'{failed} of {len(names)} {kind} could not be cancelled.')


class ShowCommand(CommandWithOptions, command.ShowOne):
    """A command that shows the resource or dict that ask() returns.

    :cvar for_people: whether tables show costs in seconds, and hide None
    """

    for_people = True

    def take_action(self, args):
        return shown(self.ask(client(self), args),
                     args if self.for_people else None)


class ListCommand(CommandWithOptions, command.Lister):
    """A command that lists the items that ask() returns.

    :cvar columns: {heading: name of a field, or function of an item}
    :cvar more_columns: further columns of --long
    """

    columns = {}
    more_columns = {}

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        if self.more_columns:
            parser.add_argument('--long', action='store_true',
                                help='More columns')
        return parser

    def take_action(self, args):
        items = list(self.ask(client(self), args))
        columns = dict(self.columns)
        if self.more_columns and args.long:
            columns.update(self.more_columns)
        return tuple(columns), [
            tuple(item[field] if isinstance(field, str) else field(item)
                  for field in columns.values()) for item in items]


class ProjectListCommand(ListCommand):
    """A command that lists objects of projects, page by page.

    :cvar call: the name of the method of the client
    :cvar same: names of arguments that are parameters of this method
    """

    call = None
    same = ()

    def ask(self, client, args):
        ask = getattr(client, self.call)
        found = list(ask(
            max_items=args.limit, project_id=args.project
            and name_lookup.project_id(self, args.project),
            all_projects=args.all_projects or None, marker=args.marker,
            **{name: getattr(args, name) for name in self.same},
            **self.query(args)))
        if not found and getattr(args, 'host', None):
            name_lookup.check_host(client, args.host)
        if not found:
            self._tell_of_others(args, ask)
        return found

    def query(self, args):
        """Return further parameters of the method."""
        return {}

    def _tell_of_others(self, args, ask):
        """Write a hint to --all-projects if other projects have items."""
        if args.all_projects or args.project or args.formatter != 'table':
            return
        try:
            others = list(ask(max_items=1, all_projects=True))
        except name_lookup.FAILURES:
            return
        if others:
            self.app.stderr.write(
                'This project has none; --all-projects lists the items of '
                'all projects.\n')


def of_projects(kind, whose='List only items of'):
    """Return the common options of a ProjectListCommand."""
    return (
        option('--project', metavar='<project>',
               help=f'{whose} this project (name or id; administrators)'),
        option('--all-projects', action='store_true',
               help='List items of all projects (administrators)'), LIMIT,
        option('--marker', metavar=f'<{kind}-id>',
               help='Last item of the previous page'))


PLOT = option('--plot', metavar='<file>', type=plot.path,
              help='Draw the report into this .svg or .png file; needs '
                   'matplotlib '
                   '(pip install nova-preempt[report])')


class ReportCommand(ShowCommand):
    """A command that shows a report over time, and can draw it.

    :cvar draw: a function of plot
    """

    options = (*INTERVAL, PLOT, option(
        '--series', action='store_true', help='Show each point in time, too'))
    for_people = False
    draw = None

    def ask(self, client, args):
        found = self.report(client, **given(
            since=args.since, until=args.until)).answer()
        if args.plot:
            drawn(type(self).draw, found, args.plot)
        if not args.series:
            for item in self.with_series(found):
                item['points'] = len(item.pop('series'))
        return found


def drawn(draw, found, file):
    """Draw a report into a file.

    :raises CommandError: it cannot be drawn
    """
    try:
        draw(found, file)
    except (plot.CannotPlot, OSError) as exc:
        raise exceptions.CommandError(str(exc)) from None


def maybe(name):
    """Return a column of a field that may be None."""
    return lambda item: OptionalColumn(item.get(name))


def each(name, key):
    """Return a column of a list field: the value of a key of its members."""
    return lambda item: format_columns.ListColumn(
        [member[key] for member in item[name]])


def shown(item, args=None):
    """Return a resource or dict in the form that ShowOne needs.

    :param args: of the command; with them, tables show costs in seconds and
        hide None
    """
    if isinstance(item, resource.Resource):
        item = item.answer()
    if getattr(args, 'formatter', '') == 'table':
        item = _for_people(item)
    return zip(*sorted(
        (name, JsonColumn(value) if isinstance(value, dict | list) else
         OptionalColumn(value)) for name, value in item.items()), strict=True)


def _for_people(value):
    if isinstance(value, list):
        return [_for_people(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {('cost_s' if name == 'cost_us' else name):
            (item / 1e6 if name == 'cost_us' and item is not None
             else _for_people(item)) for name, item in value.items()
            if item is not None}
