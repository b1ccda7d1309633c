# SPDX-License-Identifier: Apache-2.0
"""Commands to stop everything at once, and to go on."""

from nova_preempt.client import base

# As nova_preempt.db.pauses has them, which clients need not have.
WHAT = ('preemption', 'reservations', 'power', 'backlog')
ALL = 'all'

_WHAT = base.option(
    '--what', choices=[*WHAT, ALL], default=ALL,
    help='preemption: no server ends to make room, at its maximum run time, '
         'for headroom or as a simulation; reservations: none begins or ends, '
         'and no host is emptied; power: no host is switched on or off; '
         'backlog: no request that waits is started. Default: all of them')


def _chosen(args):
    return WHAT if args.what == ALL else (args.what,)


class ListPauses(base.List):
    """List what is stopped, since when, why, and who asked for it"""

    columns = {'What': 'what', 'Since': 'since', 'Reason': 'reason',
               'User': 'user_id', 'Project': 'project_id',
               'Request': 'request_id'}

    def ask(self, client, args):
        return client.pauses()


class Pause(ListPauses):
    """Stop at once what ends, moves or closes something of others'

    Who has notice keeps its place. Who has been asked to end, ends.
    """

    options = (_WHAT, base.option(
        '--reason', metavar='<text>', required=True,
        help='For those who ask why nothing happens'))

    def ask(self, client, args):
        return [client.pause(what, args.reason) for what in _chosen(args)]


class Resume(base.Command):
    """Go on with what was stopped"""

    options = (_WHAT,)

    def act(self, client, args):
        for what in _chosen(args):
            client.resume(what, ignore_missing=args.what == ALL)
