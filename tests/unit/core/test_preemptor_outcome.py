# SPDX-License-Identifier: Apache-2.0

"""What became of a server for which others have given way."""

import datetime
import unittest

from nova_preempt.core import preemptor_outcome
from nova_preempt.core.observed_server import ObservedServer

RAN = datetime.datetime(2026, 1, 1)


class TestOutcome(unittest.TestCase):

    def outcome(self, vm_state='active', task_state=None, host='h',
                operation='create', **values):
        return preemptor_outcome.outcome(
            ObservedServer('s', vm_state, task_state, host, **{
                'flavor': 'f', 'launched_at': RAN, **values}),
            'h', operation, 'f')

    def test_what_became_of_it(self):
        for expected, args, values in (
                (preemptor_outcome.SERVED, ('active',), {}),
                (preemptor_outcome.SERVED, ('resized',),
                 {'operation': 'resize'}),
                (preemptor_outcome.SERVED, ('stopped',),
                 {'operation': 'evacuate'}),
                (preemptor_outcome.ELSEWHERE, ('active', None, 'other'), {}),
                (preemptor_outcome.FAILED, ('error',), {}),
                (preemptor_outcome.FAILED, ('error', None, None), {}),
                (preemptor_outcome.FAILED, ('shelved_offloaded', None, None),
                 {'operation': 'unshelve'}),
                # Its flavor is the old one.
                (preemptor_outcome.FAILED, ('active',),
                 {'operation': 'resize', 'flavor': 'small'}),
                (preemptor_outcome.SERVED, ('deleted',), {'deleted': True}),
                (preemptor_outcome.DELETED, ('deleted',),
                 {'deleted': True, 'launched_at': None}),
                (preemptor_outcome.DELETED, ('deleted', None, None),
                 {'deleted': True}),
                # Nova frees what it has before it is gone.
                (None, ('deleted',), {}),
                (None, ('deleted',), {'launched_at': None}),
                # It is what it was until it has been rebuilt.
                (None, ('error', 'rebuilding'), {'operation': 'evacuate'}),
                (None, ('error', 'rebuild_spawning'),
                 {'operation': 'evacuate'}),
                (preemptor_outcome.FAILED, ('error',),
                 {'operation': 'evacuate'}),
                (preemptor_outcome.FAILED, ('error', 'deleting'),
                 {'operation': 'evacuate'}),
                # By its owner, who was not served.
                (preemptor_outcome.FAILED, ('error', 'rebuilding'), {}),
                (None, ('building', 'spawning'), {}),
                (None, ('building',), {}),
                (None, ('active', 'resize_migrating'),
                 {'operation': 'resize'})):
            self.assertEqual(expected, self.outcome(*args, **values),
                             (args, values))
        self.assertEqual(preemptor_outcome.DELETED,
                         preemptor_outcome.outcome(None, 'h', 'create', 'f'))


class TestWhetherItIsDeleted(unittest.TestCase):

    def test_by_its_own_record(self):
        for expected, args, values in (
                (False, ('error', None), {}),
                (False, ('active', 'resize_prep'), {}),
                (True, ('active', 'deleting'), {}),
                (True, ('active', 'soft-deleting'), {}),
                (True, ('soft-delete', None), {}),
                (True, ('deleted', None), {}),
                (True, ('deleted', None), {'deleted': True})):
            self.assertIs(expected, ObservedServer(
                's', *args, 'h', **values).is_deleted, args)
