# SPDX-License-Identifier: Apache-2.0
"""Failures of services, and of requests for several servers."""

import inspect
import unittest
from unittest import mock

from nova import exception
from oslo_db import exception as db_exc
from sqlalchemy import exc as sqla_exc

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import placement_api
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.scheduler import manager


class TestRefuseOnFailure(unittest.TestCase):

    def fail(self, error):
        def select():
            raise error

        return manager.refuse_on_failure(select)

    def test_failures_of_services(self):
        for error in (
                db_exc.DBConnectionError('mysql://u:secret@db'),
                # As oslo.db passes them on.
                sqla_exc.TimeoutError('QueuePool limit of size 5'),
                sqla_exc.OperationalError('SELECT secret', {}, None),
                cloud_view.Unanswered('http://secret: 503'),
                placement_api.PlacementError('http://secret: 503'),
                cell_calls.CellDown(cell='secret', limit=10)):
            with self.assertLogs(manager.__name__, 'ERROR'), (
                    self.assertRaises(exception.NoValidHost)) as caught:
                self.fail(error)()
            self.assertEqual(
                'No valid host was found. The request could not be '
                'scheduled: a service failed or did not answer; '
                'try again later.', str(caught.exception))

    def test_other_exceptions_are_unchanged(self):
        for error in (exception.NoValidHost(reason='mine'), ValueError('v')):
            self.assertRaisesRegex(type(error), str(error), self.fail(error))

    def test_the_arguments_of_the_manager_stay_nova_s(self):
        self.assertIn('spec_obj', inspect.signature(
            manager.PreemptibleSchedulerManager.select_destinations
        ).parameters)


class TestRollBack(unittest.TestCase):
    """A request for several servers fails after a host was claimed."""

    def fail(self, error, claims=()):
        self.scheduler = manager.PreemptibleSchedulerManager.__new__(
            manager.PreemptibleSchedulerManager)
        self.scheduler.preemption = mock.Mock()
        self.delete = (
            self.scheduler.preemption.clients.placement.delete_allocations)
        self.delete.side_effect = self.answer
        cycle = mock.Mock(made=mock.Mock(claims=claims, lost=[], free=['a']))
        self.scheduler._preempt(cycle, mock.Mock(side_effect=error), 2)

    def answer(self, uuid):
        return None

    def test_nova_leaves_an_allocation_if_placement_is_away(self):
        """A second attempt would add another one."""
        def answer(uuid):
            raise placement_api.NoAnswer('away')

        self.answer = answer
        with self.assertLogs(level='ERROR'):
            self.assertRaises(placement_api.NoAnswer, self.fail,
                              exception.NoValidHost(reason=''))

    def test_allocations_on_free_hosts_are_deleted(self):
        for error, claims, deleted in (
                (exception.NoValidHost(reason=''), (), [mock.call('a')]),
                (ValueError, ['claim'], [mock.call('a')]),
                (ValueError, (), [])):
            with self.assertRaises(type(error) if isinstance(
                    error, Exception) else error):
                self.fail(error, claims)
            self.assertEqual(deleted, self.delete.mock_calls)


if __name__ == '__main__':
    unittest.main()
