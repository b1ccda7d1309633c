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
"""Commands to stop everything at once, and to go on."""

from osc_lib.command import command

from nova_preempt.client import common

# As nova_preempt.db.pauses has them, which clients need not have.
WHAT = ('preemption', 'reservations', 'power', 'backlog')
ALL = 'all'

_COLUMNS = ('What', 'Since', 'Reason', 'User', 'Project', 'Request')
_FIELDS = ('what', 'since', 'reason', 'user_id', 'project_id', 'request_id')


def _add_what(parser):
    parser.add_argument(
        '--what', choices=[*WHAT, ALL], default=ALL,
        help='preemption: no server ends to make room, at its maximum run '
             'time, for headroom or as a simulation; reservations: none '
             'begins or ends, and no host is emptied; power: no host is '
             'switched on or off; backlog: no request that waits is started. '
             'Default: all of them')


def _chosen(args):
    return WHAT if args.what == ALL else (args.what,)


class Pause(command.Lister):
    """Stop at once what ends, moves or closes something of others'

    Who has notice keeps its place. Who has been asked to end, ends.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_what(parser)
        parser.add_argument('--reason', metavar='<text>', required=True,
                            help='For those who ask why nothing happens')
        return parser

    def take_action(self, args):
        client = common.client(self)
        return _table(client.pause(what, args.reason)
                      for what in _chosen(args))


class Resume(command.Command):
    """Go on with what was stopped"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        _add_what(parser)
        return parser

    def take_action(self, args):
        client = common.client(self)
        for what in _chosen(args):
            client.resume(what, ignore_missing=args.what == ALL)


class ListPauses(command.Lister):
    """List what is stopped, since when, why, and who asked for it"""

    def take_action(self, args):
        return _table(common.client(self).pauses())


def _table(pauses):
    return _COLUMNS, [tuple(item[name] for name in _FIELDS)
                      for item in pauses]
