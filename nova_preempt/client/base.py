# SPDX-License-Identifier: Apache-2.0
"""Base classes of the commands."""

import json
import logging
import re

from cliff import columns
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from openstack import resource
from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_preempt.client import argtypes
from nova_preempt.client import name_lookup
from nova_preempt.client import plot
from nova_preempt.client import table_text

LOG = logging.getLogger(__name__)

#: Errors of a service that does not answer, or not as expected.
UNREACHABLE = (ks_exc.ConnectFailure, ks_exc.DiscoveryFailure,
                sdk_exc.ServiceDiscoveryException)

TIME = 'ISO 8601, UTC without an offset'


class JsonColumn(columns.FormattableColumn):
    """A nested value, indented in tables."""

    def human_readable(self):
        return json.dumps(self._value, indent=2, sort_keys=True)


class ValueColumn(columns.FormattableColumn):
    """A value of the API: empty in tables if it is None, null in JSON."""

    def human_readable(self):
        return table_text.scalar(self._value)


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


def refusal(exc):
    """Return why a call failed, as one sentence without URLs."""
    if isinstance(exc, UNREACHABLE):
        return ('The service cannot be reached; does it run, and is its '
                'endpoint right?')
    details = getattr(exc, 'details', None)
    if not details:
        return str(exc)
    return ' '.join(str(details).split())


class CommandWithOptions:
    """A command with declared arguments, whose failures are one sentence.

    :cvar options: results of option() and one_of(), in the order of the help
    """

    options = ()

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        for add in self.options:
            add(parser)
        return parser

    def run(self, args):
        try:
            return super().run(args)
        except (sdk_exc.HttpException, *UNREACHABLE) as exc:
            LOG.debug('The call failed.', exc_info=True)
            raise exceptions.CommandError(refusal(exc)) from None


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
                LOG.error('Cancelling %s failed: %s', name, refusal(exc))
                failed += 1
        if failed:
            raise exceptions.CommandError(
                f'{failed} of {len(names)} {kind} could not be cancelled.')


def required(changes):
    """Return the changes that a command was asked for.

    :raises CommandError: there are none
    """
    if not changes:
        raise exceptions.CommandError('Give at least one option.')
    return changes


class ShowCommand(CommandWithOptions, command.ShowOne):
    """A command that shows the resource or dict that ask() returns.

    A table begins with a sentence, has names beside ids, and omits members
    without a value.

    :cvar why: a function of sentences, None for no sentence
    """

    why = None

    def take_action(self, args):
        item = self.ask(client(self), args)
        if isinstance(item, resource.Resource):
            item = item.answer()
        if args.formatter != 'table':
            return zip(*sorted(
                (name, JsonColumn(value) if isinstance(value, dict | list)
                 else ValueColumn(value)) for name, value in item.items()),
                strict=True)
        names = name_lookup.names(self, table_text.find_ids(item))
        shown = [(name, table_text.scalar(value) if name == 'id' else
                  table_text.block(value, names))
                 for name, value in table_text.rows(item)]
        sentence = self.why and type(self).why(item)
        return zip(*([('why', sentence)] if sentence else []), *shown,
                   strict=True)


class ListCommand(CommandWithOptions, command.Lister):
    """A command that lists the items that ask() returns.

    :cvar columns: {heading: name of a field, or function of an item}
    :cvar more_columns: further columns of --long
    :cvar empty: a sentence that says why a list may be empty
    """

    columns = {}
    more_columns = {}
    empty = ''

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--sort', metavar='<column>[:asc|desc]', action='append',
            type=argtypes.sort_key, default=[],
            help='Sort by a column, such as created_at:desc, among the items '
                 'that are listed (may be repeated)')
        if self.more_columns:
            parser.add_argument('--long', action='store_true',
                                help='More columns')
        return parser

    def take_action(self, args):
        items = list(self.ask(client(self), args))
        every = {**self.columns, **self.more_columns}
        rows = [{name: _cell(item, field) for name, field in every.items()}
                for item in items]
        for key, is_descending in reversed(args.sort):
            _sort(rows, every, key, is_descending)
        shown = (every if self.more_columns and args.long else self.columns)
        if not items and args.formatter == 'table':
            self.app.stderr.write(f'{self.why_empty(client(self), args)}\n')
        return tuple(shown), [tuple(row[name] for name in shown)
                              for row in rows]

    def why_empty(self, client, args):
        """Return why there are no items, as a sentence."""
        return self.empty


def _cell(item, field):
    value = item.get(field) if isinstance(field, str) else field(item)
    # Whole numbers as they are, which tables align.
    return ValueColumn(value) if value is None or isinstance(
        value, float) else value


def _sort(rows, headings, key, is_descending):
    """Sort rows by the column that a key names; empty cells come last."""
    known = {re.sub(r'\W+', '_', name.lower()).strip('_'): name
             for name in headings}
    if key not in known:
        raise exceptions.CommandError(
            f'--sort: there is no column {key!r}; columns are '
            f'{", ".join(sorted(known))}.')
    heading = known[key]

    def rank(row):
        value = getattr(row[heading], 'machine_readable',
                        lambda: row[heading])()
        return str(value) if isinstance(value, dict | list) else value

    empty = [row for row in rows if rank(row) is None]
    full = sorted((row for row in rows if rank(row) is not None), key=rank,
                  reverse=is_descending)
    rows[:] = full + empty


# Options that narrow a list.
_FILTERS = ('status', 'name', 'server', 'victim', 'flavor', 'host', 'user',
            'since', 'until', 'marker')


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
        return found

    def query(self, args):
        """Return further parameters of the method."""
        return {}

    def why_empty(self, client, args):
        filters = [f'--{name}' for name in _FILTERS
                   if getattr(args, name, None)]
        if filters:
            return f'Nothing matches {", ".join(filters)}.'
        if args.all_projects or args.project:
            return 'There are none.'
        try:
            others = list(getattr(client, self.call)(
                max_items=1, all_projects=True))
        except name_lookup.FAILURES:
            others = []
        return self.empty + (
            ' --all-projects lists those of all projects.' if others else '')


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


def each(name, key):
    """Return a column of a list field: the value of a key of its members."""
    return lambda item: format_columns.ListColumn(
        [member[key] for member in item[name]])
