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
"""nova-preempt-manage pause and resume, for when the API is down."""

import getpass
import socket

import nova.conf

from nova_preempt import db
from nova_preempt.db import pauses

CONF = nova.conf.CONF

_ALL = 'all'


def add_parsers(groups):
    """Add "pause", "resume" and "pauses"."""
    pause = groups.add_parser(
        'pause', help='stop preemption, reservations, power control and the '
        'backlog at once, in all schedulers and engines')
    pause.add_argument('--reason', required=True, metavar='TEXT',
                       help='for those who ask why nothing happens')
    pause.set_defaults(run=_pause)
    resume = groups.add_parser('resume', help='go on with what was stopped')
    resume.set_defaults(run=_resume)
    for parser in (pause, resume):
        parser.add_argument('--what', choices=[*pauses.ALL, _ALL],
                            default=_ALL, help='default: all of them')
    groups.add_parser('pauses', help='tell what is stopped').set_defaults(
        run=_list)


def _chosen(args):
    return pauses.ALL if args.what == _ALL else (args.what,)


def _pause(args):
    database = db.Database(CONF)
    for what in _chosen(args):
        # Nobody has a token here; whoever can write to the database may.
        pauses.pause(database, what, args.reason,
                     user_id=f'{getpass.getuser()}@{socket.gethostname()}')
    return _list(args)


def _resume(args):
    database = db.Database(CONF)
    for what in _chosen(args):
        pauses.resume(database, what)
    return _list(args)


def _list(args):
    found = pauses.get(db.Database(CONF))
    for item in found.values():
        print(f'{item.what}: paused since {item.since:%Y-%m-%dT%H:%M:%S}Z by '
              f'{item.user_id or "unknown"}: {item.reason}')
    if not found:
        print('Nothing is paused.')
    return 0
