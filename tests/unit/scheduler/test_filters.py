# SPDX-License-Identifier: Apache-2.0
"""Group members that wait for their victims count as being on the host."""

import functools
import types
import unittest
from unittest import mock

from nova import objects
from nova.scheduler.filters import affinity_filter
from oslo_db import exception as db_exc
from oslo_utils.fixture import uuidsentinel as sentinel

from nova_preempt import db
from nova_preempt.db import decisions
from nova_preempt.scheduler import filters
from nova_preempt.scheduler import host_states
from tests.unit.scheduler import test_host_states

objects.register_all()

FIRST, SECOND = sentinel.first, sentinel.second


class TestFilters(unittest.TestCase):
    """Host host1, which another member of the group may wait for."""

    def setUp(self):
        self.claims = [db.Decision('d', FIRST, host='host1',
                                   status=decisions.CLAIMED)]
        self.get_decisions = mock.Mock(side_effect=lambda statuses: [
            each for each in self.claims if each.status in statuses])
        self.placed = {}
        process = mock.Mock()
        process.decisions.get_decisions = self.get_decisions
        self.enterContext(mock.patch.object(
            filters.pending_outcomes, 'get_placed',
            lambda db, build_s: self.placed))
        self.handler = filters.HostFilterHandler(functools.partial(
            filters.pending_group_members, process))
        self.filters = [affinity_filter.ServerGroupAntiAffinityFilter(),
                        affinity_filter.ServerGroupAffinityFilter()]
        self.host = test_host_states.host((sentinel.a, sentinel.b))
        self.other = test_host_states.host(())
        self.other.host = 'other'

    def spec(self, policy, uuid=SECOND, **rules):
        return objects.RequestSpec(
            instance_uuid=uuid, scheduler_hints={},
            instance_group=objects.InstanceGroup(
                uuid=sentinel.group, policy=policy, policies=[policy],
                rules=rules, hosts=[], members=[FIRST, SECOND]))

    def passed(self, spec):
        return [state.host for state in self.handler.get_filtered_objects(
            self.filters, [self.host, self.other], spec)]

    def test_anti_affinity(self):
        self.assertEqual(['other'], self.passed(self.spec('anti-affinity')))
        self.assertEqual({sentinel.a, sentinel.b}, set(self.host.instances))

    def test_max_server_per_host(self):
        self.assertEqual(['host1', 'other'], self.passed(
            self.spec('anti-affinity', max_server_per_host=2)))

    def test_affinity(self):
        self.assertEqual(['host1'], self.passed(self.spec('affinity')))

    def test_as_the_host_would_be_without_victims(self):
        host_states.set_mark(self.host, types.SimpleNamespace(
            without=(test_host_states.server(sentinel.a),), cost_us=1),
            host_states.without(self.host,
                                [test_host_states.server(sentinel.a)]))
        self.assertEqual(['other'], self.passed(self.spec('anti-affinity')))

    def test_not_its_own_claim(self):
        self.assertEqual(['host1', 'other'], self.passed(
            self.spec('anti-affinity', uuid=FIRST)))

    def test_claims_of_closed_decisions_do_not_count(self):
        for status in (decisions.DONE, decisions.ROLLING_BACK):
            self.claims = [db.Decision('d', FIRST, host='host1',
                                       status=status)]
            self.assertEqual(['host1', 'other'],
                             self.passed(self.spec('anti-affinity')))

    def test_a_placed_member_without_host_counts(self):
        self.claims = []
        self.placed = {FIRST: 'host1', sentinel.stranger: 'other'}
        self.assertEqual(['other'], self.passed(self.spec('anti-affinity')))
        self.assertEqual(['host1'], self.passed(self.spec('affinity')))

    def test_a_request_without_group_reads_nothing(self):
        spec = self.spec('anti-affinity')
        spec.instance_group = None
        self.assertEqual(['host1', 'other'], self.passed(spec))
        self.get_decisions.assert_not_called()

    def test_without_our_database(self):
        """Nova schedules the request as without the filter."""
        self.get_decisions.side_effect = db_exc.DBConnectionError('away')
        with self.assertLogs(filters.__name__, 'WARNING'):
            self.assertEqual(['host1', 'other'],
                             self.passed(self.spec('anti-affinity')))


if __name__ == '__main__':
    unittest.main()
