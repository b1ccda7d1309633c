# SPDX-License-Identifier: Apache-2.0
"""Tests of the cache of providers."""

import unittest
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.cloud import provider_cache
from nova_preempt.core import model

QUERY = [('required', 'A')]


class FakePlacement:
    """Providers by uuid, and the calls."""

    def __init__(self, uuids):
        self.generations = dict.fromkeys(uuids, 1)
        self.calls = []

    def list_providers(self, params):
        self.calls.append(('list', *params))
        wanted = dict(params).get('uuid')
        return [placement_api.Provider(uuid, f'node {uuid}', generation)
                for uuid, generation in self.generations.items()
                if wanted in (None, uuid)]

    def get_provider_state(self, uuid, known):
        self.calls.append(uuid)
        if uuid not in self.generations:
            return None
        return model.Provider(uuid, self.generations[uuid], {}, {})


class TestProviderCache(unittest.TestCase):

    def setUp(self):
        self.now = 0
        self.placement = FakePlacement('ab')
        self.cache = provider_cache.ProviderCache(self.placement,
                                                  lambda: self.now)
        self.refresh()

    def refresh(self):
        self.cache.refresh(['node a', 'node b'])
        return self.calls()

    def calls(self):
        calls, self.placement.calls = self.placement.calls, []
        return calls

    def look(self, max_age_s=60, params=QUERY):
        """Return {uuid: whether the cached state is valid}."""
        return {provider.uuid: holds for provider, _, holds
                in self.cache.look(params, max_age_s)}

    def test_a_list_is_remembered(self):
        self.assertEqual({'a': True, 'b': True}, self.look())
        self.assertEqual([('list', *QUERY)], self.calls())
        self.now = 60
        self.look()
        self.assertEqual([], self.calls())
        self.now = 61
        self.look()
        self.assertEqual([('list', *QUERY)], self.calls())

    def test_no_remembered_list_is_used_if_it_must_be_new(self):
        self.look()
        self.look(0)
        self.assertEqual(2, len(self.calls()))

    def test_kept_fresh_in_the_background(self):
        self.look()
        self.calls()
        for self.now in range(0, 180, 30):
            self.assertEqual([('list',), ('list', *QUERY)], self.refresh())
            self.look()
            self.assertEqual([], self.calls())

    def test_free_space_without_a_new_generation(self):
        inventories = {'VCPU': model.Inventory(4)}
        self.placement.get_provider_state = lambda uuid, known: (
            model.Provider(uuid, 1, inventories, {'s': {'VCPU': 3}}))
        self.placement.get_room = mock.Mock(return_value={
            'a': {'VCPU': 1}, 'b': {'VCPU': 2}, 'c': {}})
        self.now = provider_cache.MAX_AGE_S
        self.refresh()
        self.assertTrue(self.cache.find_room(['VCPU', 'DISK_GB'], 7))
        self.assertEqual({'a': True, 'b': False}, self.look())
        # It is found once: it is to be read again from now on.
        self.assertFalse(self.cache.find_room(['VCPU', 'DISK_GB'], 7))
        self.placement.get_room.reset_mock()
        self.cache.find_room(['VCPU', 'DISK_GB'], 7)
        # A part that is free makes room together with victims.
        self.placement.get_room.assert_called_once_with(
            {'VCPU': 1, 'DISK_GB': 1}, 7)

    def test_free_space_of_a_host_that_a_server_has_just_left(self):
        self.placement.get_provider_state = lambda uuid, known: (
            model.Provider(uuid, 1, {'VCPU': model.Inventory(4)},
                           {'s': {'VCPU': 3}}))
        self.placement.get_room = lambda *args: {'a': {'VCPU': 2}}
        self.now = provider_cache.MAX_AGE_S
        self.refresh()
        self.cache.left(['node a'])
        self.assertTrue(self.cache.find_room(['VCPU'], 7))
        self.assertFalse(self.cache.find_room(['VCPU'], 7))

    def test_free_space_is_read_at_most_every_ten_seconds(self):
        self.placement.get_room = mock.Mock(return_value={})
        for self.now, classes, calls in (
                (0, ['VCPU'], 1), (9, ['VCPU'], 1), (9, ['PCPU'], 2),
                (10, ['VCPU'], 3)):
            self.assertFalse(self.cache.find_room(classes, 7, 10))
            self.assertEqual(calls, self.placement.get_room.call_count)
        self.cache.find_room(['VCPU'], 7)
        self.assertEqual(4, self.placement.get_room.call_count)

    def test_others_are_kept_as_long_as_they_are_listed(self):
        self.cache.refresh(['node b'])
        self.assertEqual({'a', 'b'}, {
            uuid for uuid in 'ab' if self.cache.known(uuid)})
        del self.placement.generations['a']
        self.cache.refresh(['node b'])
        self.assertIsNone(self.cache.known('a'))

    def test_a_failed_background_reading_does_not_stop_others(self):
        """Other providers and lists are read."""
        self.look()
        self.calls()
        self.placement.generations = {'a': 2, 'b': 2}
        read = self.placement.get_provider_state

        def get_provider_state(uuid, known):
            if uuid == 'a':
                raise placement_api.PlacementError('500')
            return read(uuid, known)

        self.placement.get_provider_state = get_provider_state
        with self.assertLogs(provider_cache.__name__, 'WARNING'):
            self.assertEqual([('list',), 'b', ('list', *QUERY)],
                             self.refresh())
        self.assertEqual(1, self.cache.known('a').generation)

    def test_many_failed_readings(self):
        self.placement.generations = dict.fromkeys('abcdef', 2)
        self.placement.get_provider_state = mock.Mock(
            side_effect=placement_api.PlacementError('500'))
        self.assertRaises(
            placement_api.PlacementError, self.cache.get_all,
            self.placement.list_providers([]))
        self.assertEqual(provider_cache.MOST_FAILURES,
                         self.placement.get_provider_state.call_count)

    def test_unused_lists_are_not_refreshed(self):
        self.look()
        self.now = provider_cache.LISTING_S + 1
        self.refresh()
        self.assertEqual([('list',)], self.refresh())

    def test_lists_of_one_host_are_not_refreshed(self):
        self.look(params=[('in_tree', 'a')])
        self.calls()
        self.assertEqual([('list',)], self.refresh())

    def test_lists_are_bounded(self):
        for number in range(2 * provider_cache.MOST_LISTINGS):
            self.look(params=[('in_tree', str(number))])
        self.assertEqual(provider_cache.MOST_LISTINGS,
                         len(self.cache._listings))

    def test_the_generation_is_another(self):
        self.placement.generations['b'] = 2
        self.assertEqual({'a': True, 'b': False}, self.look())
        # What is read after the list is newer than it.
        self.now = 1
        self.cache.read('b')
        self.assertEqual({'a': True, 'b': True}, self.look())

    def test_changed_and_left_providers_are_read_again(self):
        self.look()
        self.cache.changed('a')
        self.cache.left(['node b'])
        self.assertEqual({'a': False, 'b': False}, self.look())

    def test_left_while_it_is_read(self):
        """The answer may be older than the departure."""
        real = self.placement.get_provider_state

        def answer(uuid, known):
            state = real(uuid, known)
            self.cache.left([f'node {uuid}'])
            return state

        self.look()
        with mock.patch.object(self.placement, 'get_provider_state', answer):
            self.cache.read('a')
        self.assertEqual({'a': False, 'b': True}, self.look())
        self.cache.read('a')
        self.assertEqual({'a': True, 'b': True}, self.look())

    def test_left_on_a_host_read_for_the_first_time(self):
        """The background has not come to that host yet."""
        self.cache = provider_cache.ProviderCache(self.placement,
                                                  lambda: self.now)
        self.look()
        self.cache.read('a')
        self.assertTrue(self.look()['a'])
        self.cache.left(['node a'])
        self.assertFalse(self.look()['a'])

    def test_read_again_before_it_is_too_old(self):
        self.now = provider_cache.REREAD_S + 1
        self.assertEqual([('list',), 'a', 'b'], self.refresh())
        self.now = provider_cache.MAX_AGE_S + 1
        self.assertEqual({'a': True, 'b': True}, self.look())
        self.now += provider_cache.MAX_AGE_S
        self.assertEqual({'a': False, 'b': False}, self.look())

    def test_look_again(self):
        self.look()
        self.calls()
        self.placement.generations['a'] = 2
        self.now = 1
        self.assertTrue(self.cache.look_again(QUERY, 'a', 1)[2])
        self.assertEqual([], self.calls())
        self.now = 2
        self.assertFalse(self.cache.look_again(QUERY, 'a', 1)[2])
        self.assertEqual([('list', *QUERY, ('uuid', 'a'))], self.calls())
        del self.placement.generations['a']
        self.assertIsNone(self.cache.look_again(QUERY, 'a', 1))

    def test_outdated(self):
        self.look()
        self.cache.outdated()
        self.calls()
        self.look()
        self.assertEqual([('list', *QUERY)], self.calls())
