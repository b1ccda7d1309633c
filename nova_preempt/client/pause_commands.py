# SPDX-License-Identifier: Apache-2.0
"""Commands that show the status, and pause and resume subsystems."""

from nova_preempt.client import base
from nova_preempt.client import sentences

# A copy of nova_preempt.db.pauses.ALL, which clients must not import.
WHAT = ('preemption', 'reservations', 'power', 'backlog')
ALL = 'all'

_WHAT = base.option(
    '--what', choices=[*WHAT, ALL], default=ALL,
    help='preemption: no server is evicted for another, for headroom, at its '
         'maximum run time or as a simulation; reservations: none begins or '
         'ends, and no host is drained; power: no host is switched on or off; '
         'backlog: no waiting request is started. Default: all')


def _chosen(args):
    return WHAT if args.what == ALL else (args.what,)


class ListPauses(base.ListCommand):
    """List pauses, with reason and user"""

    columns = {'What': 'what', 'Since': 'since', 'Reason': 'reason',
               'User': 'user_id', 'Project': 'project_id',
               'Request': 'request_id'}
    empty = 'Nothing is paused.'

    def ask(self, client, args):
        return client.pauses()


class PauseSubsystem(ListPauses):
    """Pause preemption, reservations, power control or the backlog at once

    Victims with notice keep running. Evictions that Nova has begun continue.
    """

    options = (_WHAT, base.option(
        '--reason', metavar='<text>', required=True,
        help='Reason that users and operators see'))

    def ask(self, client, args):
        return [client.pause(what, args.reason) for what in _chosen(args)]


class ResumeSubsystem(base.ActionCommand):
    """Resume preemption, reservations, power control or the backlog"""

    options = (_WHAT,)

    def act(self, client, args):
        for what in _chosen(args):
            client.resume(what, ignore_missing=args.what == ALL)


class ShowStatus(base.ShowCommand):
    """Show the leading engine, pauses, waiting requests and free capacity"""

    options = (base.option(
        '--flavor', metavar='<flavor>', action='append',
        help='Count the room for this flavor (name or id; may be repeated; '
             'default: the flavors with most victims within 30 days)'),)
    why = sentences.status

    def ask(self, client, args):
        return client.get_status(**base.given(flavor=args.flavor))
