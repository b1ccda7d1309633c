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


class Json(columns.FormattableColumn):
    """Nested values: readable in tables, themselves in JSON."""

    def human_readable(self):
        return json.dumps(self._value, indent=2, sort_keys=True)


def client(command):
    """The Client of a command."""
    return command.app.client_manager.preemption


def add_interval(parser):
    """Add --since and --until."""
    parser.add_argument('--since', metavar='<time>',
                        help='Not earlier (ISO 8601, UTC without an offset)')
    parser.add_argument('--until', metavar='<time>',
                        help='Earlier than this (ISO 8601, UTC without an '
                             'offset)')


def add_limit(parser):
    """Add --limit."""
    parser.add_argument('--limit', metavar='<number>', type=_positive,
                        help='At most as many')


def _positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def shown(item):
    """A dict as what a ShowOne returns."""
    return zip(*sorted(
        (name, Json(value) if isinstance(value, dict | list) else value)
        for name, value in item.items()), strict=True)
