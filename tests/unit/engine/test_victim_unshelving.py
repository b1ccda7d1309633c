# SPDX-License-Identifier: Apache-2.0
"""Tests of returns of shelved victims."""

import dataclasses
import datetime
import types
from unittest import mock

import testtools

from nova_preempt import db
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import controller_step
from nova_preempt.core import observed_server
from nova_preempt.core.eviction import return_controller
from nova_preempt.db import decisions
from nova_preempt.engine import victim_unshelving

START = datetime.datetime(2026, 1, 1)
SIZE = {'VCPU': 1}


class TestReturns(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.seconds = 0
        self.servers = {}
        self.victims = {}
        self.decisions = mock.Mock(spec=db.Decisions)
        self.decisions.get_victims.side_effect = lambda *statuses: [
            ('d', victim) for victim in self.victims.values()
            if victim.status in statuses]
        self.decisions.update_victim.side_effect = self.update
        self.nova = mock.Mock(spec=nova_api.NovaAPI)
        self.nova.get.side_effect = self.servers.get
        self.nova.unshelve.side_effect = self.unshelve
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_room.return_value = {'h1': {'VCPU': 99}}
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {}))
        clients = mock.Mock(nova=self.nova, placement=self.placement)
        headroom = mock.Mock()
        headroom.has_room.return_value = True
        self.options = types.SimpleNamespace(
            restore_timeout_s=86400, restore_at_once=3)
        self.restorer = victim_unshelving.VictimUnshelver(
            self.decisions, clients, headroom, mock.Mock(), self.options,
            lambda: self.seconds)

    def add(self, *uuids):
        for number, uuid in enumerate(uuids):
            self.victims[uuid] = db.Victim(
                uuid, status=decisions.SHELVED, restore=True, asked='shelve',
                ended_at=START + datetime.timedelta(seconds=number),
                allocations={'p': {'resources': SIZE}})
            self.show(uuid, 'SHELVED_OFFLOADED')

    def show(self, uuid, status, task_state=None, host=None,
             launched_at=None):
        self.servers[uuid] = observed_server.ObservedServer(
            uuid, '', task_state, host, status=status,
            launched_at=launched_at)

    def update(self, decision_uuid, uuid, status, **values):
        self.victims[uuid] = db.Victim(**{
            **vars(self.victims[uuid]), 'status': status, **values})

    def unshelve(self, uuid):
        self.show(uuid, 'SHELVED_OFFLOADED', 'unshelving')

    def run_after(self, seconds):
        """Return the servers that are unshelved some seconds later."""
        self.seconds += seconds
        self.nova.unshelve.reset_mock()
        with mock.patch('oslo_utils.timeutils.utcnow',
                        return_value=START + datetime.timedelta(
                            seconds=self.seconds)):
            self.restorer.restore()
        return [call.args[0] for call in self.nova.unshelve.mock_calls]

    def test_several_at_once_in_order(self):
        self.add(*'abcde')
        self.assertEqual(['a', 'b', 'c'], self.run_after(10))
        self.assertEqual([], self.run_after(10))
        self.show('b', 'ACTIVE')
        self.assertEqual(['d'], self.run_after(10))
        self.assertEqual(decisions.RESTORED, self.victims['b'].status)

    def test_victims_of_a_backlog_request_return_despite_their_flavor(self):
        """They return until the request does not want them any more."""
        self.add('a')
        self.victims['a'] = db.Victim(
            'a', status=decisions.SHELVED, restore=False, ended_at=START,
            allocations={'p': {'resources': SIZE}})
        self.assertEqual([], self.run_after(10))
        self.restorer._wanted = lambda: frozenset('a')
        self.assertEqual(['a'], self.run_after(10))

    def test_one_that_a_request_wanted_back_loses_its_notice(self):
        """The request does not name it any more once it is unshelved."""
        self.add('a')
        self.victims['a'] = dataclasses.replace(
            self.victims['a'], restore=False, asked='')
        self.restorer._wanted = lambda: frozenset('a')
        self.assertEqual(['a'], self.run_after(10))
        self.restorer._wanted = frozenset
        self.show('a', 'ACTIVE')
        self.assertEqual([], self.run_after(60))
        self.assertEqual(decisions.RESTORED, self.victims['a'].status)
        self.nova.clear_notice.assert_called_once_with('a', 'd')

    def test_one_that_its_owner_unshelves_loses_its_notice(self):
        """Its flavor does not ask for its return, or it was given up."""
        self.add('a', 'b', 'c')
        for uuid, status, notice_s in (
                ('a', decisions.SHELVED, 30), ('b', decisions.LEFT, 30),
                ('c', decisions.SHELVED, 0)):
            self.victims[uuid] = dataclasses.replace(
                self.victims[uuid], restore=False, status=status,
                notice_s=notice_s)
        self.assertEqual([], self.run_after(10))
        for uuid in 'abc':
            self.show(uuid, 'ACTIVE')
        # Nova refuses it in some states, such as that of a resize.
        self.nova.clear_notice.return_value = False
        self.assertEqual([], self.run_after(60))
        self.assertEqual(decisions.SHELVED, self.victims['a'].status)
        self.nova.clear_notice.return_value = True
        self.assertEqual([], self.run_after(60))
        self.assertEqual(
            [decisions.RESTORED, decisions.RESTORED, decisions.SHELVED],
            [self.victims[uuid].status for uuid in 'abc'])
        self.nova.clear_notice.assert_called_with('b', 'd')

    def test_servers_shelved_by_their_owner_do_not_return(self):
        self.add('a', 'b', 'c')
        for uuid, asked in (('a', ''), ('b', 'shelve_offload')):
            self.victims[uuid] = dataclasses.replace(self.victims[uuid],
                                                     asked=asked)
        self.assertEqual(['c'], self.run_after(10))
        self.assertEqual([False, False, True], [
            victim.restore for victim in self.victims.values()])
        self.assertEqual({decisions.SHELVED}, {
            victim.status for victim in self.victims.values()})
        # Unless a request waits for it.
        self.restorer._wanted = lambda: frozenset('a')
        self.assertEqual(['a'], self.run_after(10))

    def test_a_server_that_has_run_since_does_not_return(self):
        self.add('a', 'b')
        self.show('a', 'SHELVED_OFFLOADED',
                  launched_at=START + datetime.timedelta(seconds=5))
        self.show('b', 'SHELVED_OFFLOADED',
                  launched_at=START - datetime.timedelta(hours=1))
        self.assertEqual(['b'], self.run_after(10))
        self.assertEqual(decisions.RESTORED, self.victims['a'].status)

    def test_the_clock_is_set_back(self):
        """No return is delayed by the time the clock was set back."""
        self.add('a')
        self.assertEqual(['a'], self.run_after(10))
        self.show('a', 'SHELVED_OFFLOADED')
        self.assertEqual(['a'], self.run_after(-86_400))
        self.assertEqual([], self.run_after(10))

    def test_a_stuck_server_does_not_delay_others(self):
        self.options.restore_at_once = 1
        self.add('stuck', 'next', 'last')
        self.assertEqual(['stuck'], self.run_after(10))
        self.assertEqual([], self.run_after(50))
        self.assertEqual(['next'], self.run_after(11))
        self.show('next', 'ACTIVE')
        self.assertEqual(['last'], self.run_after(10))

    def test_a_server_that_nova_cannot_show_does_not_delay_others(self):
        self.add('bad', 'good')
        self.nova.get.side_effect = lambda uuid: (
            self.servers[uuid] if uuid == 'good' else self.fail_to_show())
        self.assertEqual(['good'], self.run_after(10))

    def fail_to_show(self):
        raise nova_api.NovaError('500')

    def test_servers_that_nova_cannot_show_are_retried_later(self):
        self.add(*'abcdefg')
        self.nova.get.side_effect = nova_api.NovaError('its cell is down')
        self.assertEqual([], self.run_after(10))
        self.assertEqual(7, self.nova.get.call_count)
        self.assertEqual([], self.run_after(return_controller.LOOK_S - 1))
        self.assertEqual(7, self.nova.get.call_count)
        self.nova.get.side_effect = self.servers.get
        self.assertEqual(['a', 'b', 'c'], self.run_after(1))

    def test_nova_is_called_once_while_it_is_down(self):
        self.add(*'abcde')
        self.nova.get.side_effect = nova_api.NoAnswer('503')
        for _ in range(2):
            self.assertRaises(nova_api.NoAnswer, self.run_after, 10)
        self.assertEqual(2, self.nova.get.call_count)
        self.nova.get.side_effect = self.servers.get
        self.nova.unshelve.side_effect = nova_api.NoAnswer('503')
        self.assertRaises(nova_api.NoAnswer, self.run_after, 10)
        self.nova.unshelve.assert_called_once_with('a')

    def test_a_round_reads_a_limited_number_of_servers(self):
        self.placement.get_room.return_value = {}
        uuids = [f's{number:03}'
                 for number in range(return_controller.MOST_LOOKS + 20)]
        self.add(*uuids)
        self.run_after(10)
        self.assertEqual(return_controller.MOST_LOOKS,
                         self.nova.get.call_count)
        self.run_after(10)
        self.assertEqual(uuids, [
            call.args[0] for call in self.nova.get.mock_calls])

    def test_a_refused_server_does_not_delay_others(self):
        self.add('bad', 'good')
        self.nova.unshelve.side_effect = [nova_api.NovaError('409'), None]
        self.assertEqual(['bad', 'good'], self.run_after(10))
        self.assertEqual(1, self.victims['bad'].tries)

    def test_a_server_without_space_backs_off(self):
        self.add('a')
        self.nova.unshelve.side_effect = None
        asked = [seconds for seconds in range(10, 600, 10)
                 if self.run_after(10)]
        self.assertEqual([10, 70, 190, 430], asked)

    def test_only_servers_with_space_are_unshelved(self):
        self.placement.get_room.return_value = {'h1': {'VCPU': 1},
                                                'h2': {'VCPU': 1}}
        self.add(*'abcde')
        self.assertEqual(['a', 'b'], self.run_after(10))

    def test_a_server_without_allocations_does_not_return(self):
        """It was evicted for that reason; its size is unknown."""
        self.placement.get_room.side_effect = lambda resources: (
            {'h1': {'VCPU': 1}} if resources else self.fail_to_read())
        self.add(*'abc')
        self.victims['b'] = dataclasses.replace(
            self.victims['b'], allocations={})
        self.assertEqual(['a', 'b'], self.run_after(10))

    def fail_to_read(self):
        raise placement_api.PlacementError('400')

    def test_servers_are_not_read_repeatedly_without_space(self):
        self.placement.get_room.return_value = {}
        self.add(*'abcde')
        for _ in range(5):
            self.assertEqual([], self.run_after(10))
        self.assertEqual(5, self.nova.get.call_count)
        self.placement.get_room.assert_called_with(SIZE)

    def test_space_is_read_once_for_each_size(self):
        self.add(*'abcde')
        self.run_after(10)
        self.placement.get_room.assert_called_once_with(SIZE)

    def test_a_shelved_server_that_was_not_offloaded_is_unshelved(self):
        """Its preemption was rolled back, but it does not run yet."""
        self.add('a')
        self.show('a', 'SHELVED')
        self.assertEqual(['a'], self.run_after(10))
        self.assertEqual(decisions.SHELVED, self.victims['a'].status)
        self.show('a', 'ACTIVE')
        self.run_after(10)
        self.assertEqual(decisions.RESTORED, self.victims['a'].status)

    def test_a_server_still_on_its_host_is_not_unshelved(self):
        """Nova would remove the host of a server that runs elsewhere."""
        self.add('a')
        self.show('a', 'SHELVED_OFFLOADED', host='h1')
        self.assertEqual([], self.run_after(10))
        self.assertEqual([], self.run_after(10))
        self.show('a', 'SHELVED_OFFLOADED')
        self.assertEqual(['a'], self.run_after(10))

    def test_a_server_still_on_a_dead_host_is_unshelved_later(self):
        self.add('a')
        self.show('a', 'SHELVED_OFFLOADED', host='h1')
        asked = [seconds for seconds in range(10, 1000, 10)
                 if self.run_after(10)]
        self.assertEqual(10 + return_controller.LET_GO_S, asked[0])

    def test_deleted_by_its_owner(self):
        self.add('a', 'b')
        del self.servers['a']
        self.assertEqual(['b'], self.run_after(10))
        self.assertEqual(decisions.GONE, self.victims['a'].status)

    def test_a_server_is_given_up_after_the_timeout(self):
        self.add('a')
        self.assertEqual([], self.run_after(86401))
        self.assertEqual(decisions.LEFT, self.victims['a'].status)


class TestOfClass(TestReturns):
    """Servers of a class return by passes, others as usual."""

    def setUp(self):
        super().setUp()
        self.asked = []
        self.chosen = []
        self.returning = mock.Mock(period_s=300)
        self.returning.of_class.side_effect = lambda uuids: {
            uuid for uuid in uuids if uuid.startswith('gold')}
        self.returning.step.side_effect = self.step
        self.restorer._returning = self.returning

    def step(self, waiting, most, room, memory, now_us):
        needs = sorted(each.uuid for each in waiting)
        self.asked.append((needs, most))
        return controller_step.Step(tuple(
            uuid for uuid in self.chosen if uuid in needs)[:most], memory)

    def test_servers_of_a_class_return_first(self):
        self.add('a', 'b', 'gold1', 'gold2', 'c')
        self.chosen = ['gold2', 'gold1']
        self.assertEqual(['gold2', 'gold1', 'a'], self.run_after(10))
        self.assertEqual([(['gold1', 'gold2'], 3)], self.asked)
        self.assertEqual([], self.run_after(10))

    def test_servers_of_a_class_without_space_let_others_pass(self):
        self.add('gold1', 'a')
        self.assertEqual(['a'], self.run_after(10))

    def test_servers_of_a_class_wait_without_limit(self):
        self.options.restore_timeout_s = 100
        self.add('gold1', 'a')
        self.placement.get_room.return_value = {}
        self.run_after(1000)
        self.assertEqual(decisions.LEFT, self.victims['a'].status)
        self.assertEqual(decisions.SHELVED, self.victims['gold1'].status)
        self.chosen = ['gold1']
        for number in range(5):
            self.assertEqual(['gold1'], self.run_after(301), number)
            self.show('gold1', 'SHELVED_OFFLOADED')
            self.assertEqual([], self.run_after(298))

    def test_servers_of_a_class_that_are_gone_or_back_are_closed(self):
        self.add('gold1', 'gold2')
        self.servers['gold1'] = None
        self.show('gold2', 'ACTIVE')
        self.assertEqual([], self.run_after(61))
        self.assertEqual(decisions.GONE, self.victims['gold1'].status)
        self.assertEqual(decisions.RESTORED, self.victims['gold2'].status)
