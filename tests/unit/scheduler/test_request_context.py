# SPDX-License-Identifier: Apache-2.0
"""Placement client of each kind of request."""

import threading
import unittest
from unittest import mock

from nova.objects import request_spec

from nova_preempt.cloud import placement_api
from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.scheduler import engine_chosen_hosts
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler.request_context import RequestContext

REQUEST = {'allocations': {'rp': {'resources': {'VCPU': 1}}}}


class Headroom:
    """SchedulingPass that refuses or allows each claim."""

    is_open = False

    def claim(self, allocations, real_claim):
        return self.is_open and real_claim()


class Resources:
    """Resources of one server of a request, on any host."""

    in_tree = None

    def get_request_group(self, suffix):
        return self


class TestChosenHosts(unittest.TestCase):
    """Placement has more hosts than it returns."""

    offered = [REQUEST] * 1000, {'rp': 'known'}, '1.36'

    def offer(self, answer, find=lambda query: [
            placement_api.Provider(query[0][1], 'host', 0, '')]):
        return engine_chosen_hosts.add(
            self.offered, ('a', 'b'),
            lambda resources: answer(resources.in_tree), Resources(), find)

    def test_they_are_asked_for(self):
        requests, summaries, _ = self.offer(
            lambda uuid: ([uuid], {uuid: 'new'}, '1.36'))
        self.assertEqual(['a', 'b'], requests[1000:])
        self.assertEqual({'rp': 'known', 'a': 'new', 'b': 'new'}, summaries)

    def test_not_where_a_server_goes_later(self):
        """A move keeps the hints of the creation."""
        spec = request_spec.RequestSpec(
            scheduler_hints={boot_host_choice.HINT: ['secret']})
        for operation in ('resize', 'cold_migrate', 'live_migrate',
                          'unshelve', 'evacuate'):
            self.assertIsNone(engine_chosen_hosts.find(None, RequestContext(
                None, spec, ('s',),
                get_operation=lambda name=operation: name), None))

    def test_placement_is_away(self):
        """The request is treated as without chosen hosts."""
        self.assertEqual(self.offered, self.offer(lambda uuid: None))
        self.assertEqual(self.offered, self.offer(None, mock.Mock(
            side_effect=placement_api.PlacementError('away'))))


class TestPlacementClient(unittest.TestCase):

    def setUp(self):
        self.real = mock.Mock()
        self.real.claim_resources.return_value = 'claimed'
        self.real.get_allocation_candidates.return_value = 'offered'
        self.client = request_context.ReportClientProxy(self.real)

    def claim(self):
        return self.client.claim_resources(
            'context', 'uuid', REQUEST, 'own', 'user',
            allocation_request_version='1.36')

    def assert_claimed_for(self, project_id):
        self.real.claim_resources.assert_called_once_with(
            'context', 'uuid', REQUEST, project_id, 'user',
            allocation_request_version='1.36')
        self.real.reset_mock()

    def test_other_calls_are_novas(self):
        self.client.get('/x')
        self.real.get.assert_called_once_with('/x')

    def test_requests_of_others_are_unchanged(self):
        self.assertEqual('offered', self.client.get_allocation_candidates(
            'context', 'resources'))
        self.assertEqual('claimed', self.claim())
        self.assert_claimed_for('own')

    def test_project(self):
        with request_context.working_on(RequestContext(project_id='other')):
            self.assertEqual('claimed', self.claim())
            self.assert_claimed_for('other')
            with request_context.working_on(RequestContext()):
                self.claim()
                self.assert_claimed_for('own')
            self.claim()
            self.assert_claimed_for('other')
        self.claim()
        self.assert_claimed_for('own')

    def test_headroom(self):
        headroom = Headroom()
        with request_context.working_on(RequestContext(
                headroom=headroom, project_id='other')):
            self.assertFalse(self.claim())
            self.real.claim_resources.assert_not_called()
            headroom.is_open = True
            self.assertEqual('claimed', self.claim())
        self.assert_claimed_for('other')

    def test_cycle(self):
        cycle = mock.Mock()
        cycle.claim.side_effect = lambda real_claim, *args: real_claim()
        with request_context.working_on(RequestContext(cycle=cycle)):
            self.assertIs(cycle.offer.return_value,
                          self.client.get_allocation_candidates(
                              'context', 'resources'))
            self.assertEqual('claimed', self.claim())
            cycle.offer.assert_called_once_with('resources', 'offered')
            # It has to know that Placement is away.
            self.real.get_allocation_candidates.return_value = None
            cycle.offer.return_value = None
            self.assertIsNone(self.client.get_allocation_candidates(
                'context', 'resources'))
        cycle.offer.assert_called_with('resources', None)
        cycle.claim.assert_called_once_with(mock.ANY, 'uuid', REQUEST, 'own',
                                            'user')
        self.assert_claimed_for('own')

    def test_another_thread(self):
        found = []
        with request_context.working_on(RequestContext(project_id='other')):
            thread = threading.Thread(
                target=lambda: found.append(request_context.current()))
            thread.start()
            thread.join()
        self.assertEqual([RequestContext()], found)
