# SPDX-License-Identifier: Apache-2.0
"""Tests of requests that wait for sleeping hosts."""

import threading
import unittest
from unittest import mock

from nova import exception
from oslo_utils import timeutils

from nova_preempt import exceptions
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import provider_cache
from nova_preempt.cloud import provider_tree_cache
from nova_preempt.core import model
from nova_preempt.core import poll_timing
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from nova_preempt.db import energy_store
from nova_preempt.db import sleeping_host_claims
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import request_deadline
from nova_preempt.scheduler import wake_on_demand
from tests.unit.power import base
from tests.unit.power import world


class Spec:
    """A request for a number of cores."""

    def __init__(self, vcpus=2):
        self.flavor = mock.Mock(vcpus=vcpus)
        self.used = False

    def __deepcopy__(self, memo):
        assert not self.used
        return Spec(self.flavor.vcpus)


class FakePlacement:
    """Hosts of four cores with two GPUs below each, and the calls."""

    def __init__(self, hosts):
        self.names = [f'h{number}' for number in range(hosts)]
        self.calls = []

    def listed(self):
        return [placement_api.Provider(name, f'host {name}', 1)
                for name in self.names]

    def list_all_providers(self, params):
        self.calls.append(params)
        return [item for name in self.names
                for item in (placement_api.Provider(name, name, 1, name),
                             *(placement_api.Provider(f'{name}-g{number}', 'g',
                                                      1, name, name)
                               for number in range(2)))]

    def get_provider_state(self, uuid, known=None):
        self.calls.append(uuid)
        inventory = 'GPU', 1
        if uuid.partition('-')[0] == uuid:
            inventory = 'VCPU', 4
        if uuid.partition('-')[0] not in self.names:
            return None
        return model.Provider(
            uuid, 1, {inventory[0]: model.Inventory(inventory[1])}, {})

    def get_traits(self, uuid):
        return []

    get_aggregates = get_traits


class TestRoom(unittest.TestCase):
    """Tests of the space on sleeping hosts."""

    def setUp(self):
        super().setUp()
        self.placement = FakePlacement(50)
        cache = provider_cache.ProviderCache(self.placement)
        self.demand = wake_on_demand.WakeOnDemand(
            None, mock.Mock(known=mock.Mock(
                providers=cache, trees=provider_tree_cache.ProviderTreeCache(
                    self.placement, cache))), None)

    def room(self, wanted, listed=None):
        """Return how many servers fit on a host, and on how many hosts."""
        self.placement.calls.clear()
        found = self.demand._room(wanted, listed or self.placement.listed())
        return set(found.values()), len(found)

    def test_devices_below_a_sleeping_host_count(self):
        for wanted, found in (
                (model.Request.of({'VCPU': 1}), ({4}, 50)),
                (model.Request((model.RequestGroup({'VCPU': 1}),
                                model.RequestGroup({'GPU': 1},
                                                   '1'))), ({2}, 50)),
                (model.Request.of({'FPGA': 1}), (set(), 0))):
            self.assertEqual(found, self.room(wanted))

    def test_a_host_that_is_gone(self):
        listed = self.placement.listed()
        self.placement.names.pop()
        for wanted in ({'VCPU': 1}, {'GPU': 1}):
            self.assertEqual(49, self.room(
                model.Request.of(wanted), listed)[1])

    def test_trees_of_sleeping_hosts_are_read_once(self):
        for resources, calls in (({'VCPU': 1}, 0), ({'GPU': 1}, 1)):
            wanted = model.Request.of(resources)
            self.room(wanted)
            self.room(wanted)
            self.assertEqual(calls, len(self.placement.calls))


class TestDemand(world.WorldTestCase):

    def setUp(self):
        super().setUp()
        self.waiting = base.Waiting()
        self.engine = mock.Mock()
        self.engine.wake_hosts.return_value = {'hosts': ['a'], 'boot_s': 300}
        self.demand = wake_on_demand.WakeOnDemand(
            self.conf, mock.Mock(process=mock.Mock(db=self.db),
                                 monotonic=self.waiting.clock),
            self.engine, self.waiting.sleep)
        self.left_s = 1740
        self.places = None
        self.room = {'a': 1, 'b': 1}
        patch = mock.patch.object(self.demand, '_candidates',
                                  lambda context, spec: dict(self.room))
        patch.start()
        self.addCleanup(patch.stop)
        self.asleep('a', 'b')
        self.free = False

    def asleep(self, *names):
        for name in names:
            self.assertTrue(self.to(name, 'asleep', ('on',)))

    def to(self, name, state, before=power_steps.STATES):
        return energy_store.set_power(self.db, name, state, base.NOW.replace(
            tzinfo=None), from_states=before)

    def place(self, asked):
        """Change the request, as Nova does."""
        spec = asked.spec_obj
        self.assertFalse(spec.used)
        spec.used = True
        if not self.free:
            raise exception.NoValidHost(reason='There is no room.')
        return 'there'

    def serve(self, servers=('s1',)):
        with request_deadline.Deadline(poll_timing.TimeBudget(self.left_s, 0),
                                       self.places,
                                       self.waiting.clock) as mine:
            return self.demand.serve(request_context.RequestContext(
                None, Spec(), tuple(servers), deadline=mine), self.place)

    def refused(self):
        return str(self.assertRaises(exception.NoValidHost, self.serve))

    def up_in(self, seconds, name='a', free=True):
        def boot():
            self.to(name, 'on')
            self.free = free

        self.waiting.at[self.waiting.now_s + seconds] = boot

    def test_a_request_with_free_space_wakes_no_host(self):
        self.free = True
        self.assertEqual('there', self.serve())
        self.engine.wake_hosts.assert_not_called()

    def test_a_request_waits_for_woken_hosts(self):
        self.up_in(200)
        self.assertEqual('there', self.serve(['s1', 's2']))
        self.engine.wake_hosts.assert_called_once_with(
            None, 's1', 2, {'a': 1, 'b': 1})
        self.assertEqual([('s1', 2, 200.0), ('s2', 2, 200.0)], [
            (wake.server_uuid, wake.cores, wake.boot_s)
            for wake in energy_store.get_wakes(self.db)])

    def test_time_is_up(self):
        self.assertEqual(
            'No valid host was found. There is no room. Hosts are being '
            'powered on for the request, which takes about 300 s; it '
            'has waited 600 s. Try again later.',
            self.refused())
        self.assertEqual(1600, self.waiting.now_s)

    def test_a_request_waits_no_longer_than_the_conductor(self):
        self.left_s = 40
        self.refused()
        self.assertEqual(1040, self.waiting.now_s)

    def test_time_spent_before_the_wake_counts(self):
        """For example the time of victims that did not end."""
        def place(asked):
            self.waiting.now_s += 500
            raise exception.NoValidHost(reason='There is no room.')

        self.left_s = 700
        self.place = place
        self.refused()
        self.assertEqual(1700, self.waiting.now_s)

    def test_no_host_is_woken_if_too_many_requests_wait(self):
        """A user could wake all hosts by requests that are refused."""
        self.places = threading.Semaphore(0)
        self.assertEqual(
            'No valid host was found. There is no room. Preemption could not '
            'help: too many requests wait for capacity; try again later.',
            self.refused())
        self.assertEqual(1000, self.waiting.now_s)
        self.engine.wake_hosts.assert_not_called()

    def test_no_waiting_slot_is_used_if_no_host_fits(self):
        self.places = threading.Semaphore(0)
        self.room = {}
        self.assertNotIn('too many requests', self.refused())

    def test_the_waiting_slot_is_released(self):
        self.places = threading.Semaphore(1)
        self.refused()
        self.assertTrue(self.places.acquire(blocking=False))

    def test_nova_says_nothing_more(self):
        def place(asked):
            raise exception.NoValidHost(reason='')

        self.place = place
        self.set(demand_wait_s=0)
        self.assertEqual(
            'No valid host was found. Hosts are being powered on '
            'for the request, which takes about 300 s; try again then.',
            self.refused())

    def test_does_not_wait(self):
        self.set(demand_wait_s=0)
        self.assertIn('Hosts are being powered on', self.refused())
        self.assertEqual(1000, self.waiting.now_s)

    def test_no_host_is_woken_if_none_fits(self):
        self.room = {}
        self.assertNotIn('Capacity', self.refused())
        self.engine.wake_hosts.assert_not_called()

    def test_no_host_is_woken_if_request_filters_refuse(self):
        self.demand._candidates = lambda context, spec: (
            wake_on_demand.WakeOnDemand._candidates(
                self.demand, context, spec))
        with mock.patch.object(
                wake_on_demand.request_filter, 'process_reqspec',
                side_effect=exception.RequestFilterFailed(reason='no')), (
                self.assertNoLogs(wake_on_demand.__name__, 'ERROR')):
            self.refused()
        self.engine.wake_hosts.assert_not_called()

    def test_the_engine_wakes_no_host(self):
        self.engine.wake_hosts.return_value = {'hosts': [], 'boot_s': 0}
        self.assertNotIn('Capacity', self.refused())

    def test_the_engine_does_not_answer(self):
        self.engine.wake_hosts.side_effect = exceptions.NoAnswer('no')
        self.assertNotIn('Capacity', self.refused())

    def test_disabled_options_wake_no_host(self):
        for option in ('enabled', 'demand_wakes'):
            self.set(**{option: False})
            self.refused()
            self.set(**{option: True})
        self.engine.wake_hosts.assert_not_called()

    def test_a_host_that_did_not_help_is_not_woken_again(self):
        answers = {'a': ['a'], 'b': ['b']}

        def wake(context, request, servers, hosts):
            name = min(hosts)
            self.up_in(100, name, free=name == 'b')
            return {'hosts': answers[name], 'boot_s': 300}

        self.engine.wake_hosts.side_effect = wake
        self.assertEqual('there', self.serve())
        self.assertEqual(1200, self.waiting.now_s)
        self.assertEqual([['a', 'b'], ['b']], [
            sorted(call.args[3])
            for call in self.engine.wake_hosts.call_args_list])

    def test_a_host_that_fails_is_replaced(self):
        def wake(context, request, servers, hosts):
            if self.engine.wake_hosts.call_count == 1:
                self.waiting.at[self.waiting.now_s + 50] = (
                    lambda: self.to('a', 'failed'))
                return {'hosts': ['a'], 'boot_s': 300}
            self.up_in(100, 'b')
            return {'hosts': ['b'], 'boot_s': 300}

        self.engine.wake_hosts.side_effect = wake
        self.assertEqual('there', self.serve())

    def test_a_host_that_is_shutting_down_is_waited_for(self):
        self.to('a', 'sleeping')
        self.up_in(200)
        self.assertEqual('there', self.serve())
        self.assertEqual(1, self.engine.wake_hosts.call_count)

    def test_promised_hosts_are_released(self):
        def wake(context, request, servers, hosts):
            sleeping_host_claims.make(self.db, request, lambda others: [
                wake_choice.Promise(request, 'a', 1, 2)], timeutils.utcnow(),
                600, lambda name: False)
            return {'hosts': ['a'], 'boot_s': 300}

        self.engine.wake_hosts.side_effect = wake
        self.refused()
        # The host is to wake all the same: capacity is on its way.
        self.assertEqual(1, len(sleeping_host_claims.get(
                                    self.db,
                                    base.NOW.replace(year=2000, tzinfo=None))))
        self.up_in(200)
        self.assertEqual('there', self.serve())
        self.assertEqual([],
                         sleeping_host_claims.get(self.db, base.NOW.replace(
                                                      year=2000, tzinfo=None)))

    def test_a_request_waits_for_all_woken_hosts(self):
        self.engine.wake_hosts.return_value = {'hosts': ['a', 'b'],
                                               'boot_s': 300}
        self.up_in(100, 'a', free=False)
        self.up_in(150, 'b')
        self.assertEqual('there', self.serve())
        self.assertEqual(1, self.engine.wake_hosts.call_count)

    def test_a_host_that_falls_asleep_meanwhile_is_woken_again(self):
        """The engine wakes it only if it is requested."""
        def wake(context, request, servers, hosts):
            if self.engine.wake_hosts.call_count > 1:
                self.up_in(100, 'a')
                return {'hosts': ['a'], 'boot_s': 300}
            self.up_in(100, 'a', free=False)
            self.waiting.at[self.waiting.now_s + 120] = (
                lambda: self.to('a', 'asleep'))
            self.up_in(150, 'b', free=False)
            return {'hosts': ['a', 'b'], 'boot_s': 300}

        self.engine.wake_hosts.side_effect = wake
        began_s = self.waiting.now_s
        self.assertEqual('there', self.serve())
        self.assertEqual([['a', 'b'], ['a']], [
            sorted(call.args[3])
            for call in self.engine.wake_hosts.call_args_list])
        self.assertEqual(250, self.waiting.now_s - began_s)
