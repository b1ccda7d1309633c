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
"""What commands have in common."""

import json

from cliff import columns
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from openstack import resource

from nova_preempt.client import values

#: What a call raises that was refused or not answered.
FAILURES = (sdk_exc.SDKException, ks_exc.ClientException)


class Json(columns.FormattableColumn):
    """Nested values: readable in tables, themselves in JSON."""

    def human_readable(self):
        return json.dumps(self._value, indent=2, sort_keys=True)


class Maybe(columns.FormattableColumn):
    """What may not be known: nothing in tables, null in JSON."""

    def human_readable(self):
        return '' if self._value is None else str(self._value)


def client(command):
    """The nova_preempt.sdk.v1 Proxy of a command."""
    return command.app.client_manager.preemption


def given(**values):
    """Those that are not None."""
    return {name: value for name, value in values.items()
            if value is not None}


def add_interval(parser):
    """Add --since and --until."""
    parser.add_argument('--since', metavar='<time>', type=values.time,
                        help='Not earlier (ISO 8601, UTC without an offset)')
    parser.add_argument('--until', metavar='<time>', type=values.time,
                        help='Earlier than this (ISO 8601, UTC without an '
                             'offset)')


def add_limit(parser):
    """Add --limit."""
    parser.add_argument('--limit', metavar='<number>', type=values.quantity,
                        help='At most as many')


def shown(item, args=None):
    """A resource, or a dict, as what a ShowOne returns.

    :param args: of the command: in a table costs are in seconds, and what is
        not known is left out; elsewhere all is as the API has it
    """
    if isinstance(item, resource.Resource):
        item = item.answer()
    if getattr(args, 'formatter', '') == 'table':
        item = _for_people(item)
    return zip(*sorted(
        (name, Json(value) if isinstance(value, dict | list) else
         Maybe(value)) for name, value in item.items()), strict=True)


def _for_people(value):
    if isinstance(value, list):
        return [_for_people(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {('cost_s' if name == 'cost_us' else name):
            (item / 1e6 if name == 'cost_us' and item is not None
             else _for_people(item)) for name, item in value.items()
            if item is not None}


def tell_of_others(command, args, rows, ask):
    """The rows; if there are none, where there may be some.

    :param ask: lists one of all projects, which administrators may
    """
    rows = list(rows)
    if rows or args.all_projects or args.project or (
            args.formatter != 'table'):
        return rows
    try:
        others = list(ask())
    except FAILURES:
        return rows
    if others:
        command.app.stderr.write(
            'There are none of this project; --all-projects lists those of '
            'all.\n')
    return rows
