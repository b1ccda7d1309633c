# SPDX-License-Identifier: Apache-2.0

import threading
import unittest
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.cloud import provider_cache
from nova_preempt.cloud import provider_tree_cache
from nova_preempt.core import model


class FakePlacement:
    """Hosts with a GPU each, and storage that they share."""

    def __init__(self, hosts=('h',)):
        self.hosts = {name: name.replace('h', 'g') for name in hosts}
        self.generations = dict.fromkeys(
            [*self.hosts, *self.hosts.values(), 's'], 1)
        self.aggregates = {'s': ['agg']}
        self.used = {}
        self.reads = []
        self.lists = []

    def list_all_providers(self, params):
        self.lists.append(params)
        share = placement_api.Provider('s', 'share', self.generations['s'],
                                       's')
        if params == [('required', provider_tree_cache.SHARES)]:
            return [share]
        found = [share]
        for host, gpu in self.hosts.items():
            listed = [
                placement_api.Provider(host, 'host', self.generations[host],
                                       host),
                placement_api.Provider(gpu, 'gpu', self.generations[gpu], host,
                                       host)]
            if params == [('in_tree', host)]:
                return listed
            found += listed
        assert not params, params
        return found

    def get_provider_state(self, uuid, known=None):
        self.reads.append(uuid)
        return model.Provider(uuid, self.generations[uuid],
                              {uuid.upper(): model.Inventory(2)},
                              dict(self.used.get(uuid, {})))

    def get_traits(self, uuid):
        return [provider_tree_cache.SHARES] if uuid == 's' else [
            f'CUSTOM_{uuid.upper()}']

    def get_aggregates(self, uuid):
        return self.aggregates.get(
            uuid, ['agg'] if uuid in self.hosts else [])


class TestTrees(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.begin()

    def begin(self, *hosts):
        self.placement = FakePlacement(hosts or ['h'])
        self.clock = mock.Mock(side_effect=range(1, 1000))
        self.providers = provider_cache.ProviderCache(self.placement,
                                                      self.clock)
        self.trees = provider_tree_cache.ProviderTreeCache(self.placement,
                                                           self.providers,
                                                           self.clock)

    def test_order_of_root_nested_and_shared_providers(self):
        tree = self.trees.read('h')
        self.assertEqual(['host', 'gpu', 'share'],
                         [each.name for each in tree])
        self.assertEqual(['', 'h', ''], [each.parent_uuid for each in tree])
        self.assertEqual({'CUSTOM_G'}, tree[1].traits)
        self.assertEqual({'s'}, model.Host('host', tree).shared)

    def test_a_tree_is_read_once(self):
        tree = self.trees.read('h')
        self.placement.reads.clear()
        self.assertEqual((tree, True), self.trees.look()['h'])
        self.assertIs(tree, self.trees.get('h'))
        self.assertEqual([], self.placement.reads)

    def test_a_change_below_the_host(self):
        self.trees.read('h')
        self.placement.generations['g'] += 1
        self.placement.used['g'] = {'a': {'G': 1}}
        self.assertFalse(self.trees.look()['h'][1])
        self.assertEqual({'a': {'G': 1}}, self.trees.get('h')[1].allocations)

    def test_a_change_of_a_shared_provider(self):
        self.trees.read('h')
        self.placement.generations['s'] += 1
        self.placement.used['s'] = {'a': {'S': 1}}
        self.placement.reads.clear()
        tree, holds = self.trees.look()['h']
        self.assertTrue(holds)
        self.assertEqual({'a': {'S': 1}}, tree[2].allocations)
        self.assertIs(tree, self.trees.get('h'))
        self.assertEqual(['s'], self.placement.reads)

    def test_a_server_of_another_host_has_left_a_shared_provider(self):
        """Placement does not raise a generation then."""
        self.placement.used['s'] = {'a': {'S': 1}}
        self.trees.read('h')
        self.placement.used['s'] = {}
        self.placement.reads.clear()
        self.providers.left([])
        self.assertEqual({'a': {'S': 1}},
                         self.trees.look()['h'][0][2].allocations)
        self.providers.left(['other'])
        for _ in range(2):
            tree, holds = self.trees.look()['h']
            self.assertTrue(holds)
            self.assertEqual({}, tree[2].allocations)
        self.assertEqual(['s'], self.placement.reads)
        self.providers.left(['other'])
        self.assertEqual((tree, True), self.trees.look_again('h'))
        self.assertEqual(['s', 's'], self.placement.reads)

    def test_shared_providers_are_read_again_after_a_while(self):
        """A deletion in Placement leaves no other trace."""
        self.placement.used['s'] = {'a': {'S': 1}}
        self.trees.read('h')
        self.placement.used['s'] = {}
        self.clock.side_effect = range(500, 1000)
        self.assertEqual({}, self.trees.look()['h'][0][2].allocations)

    def test_a_provider_that_is_shared_with_other_hosts_now(self):
        self.trees.read('h')
        self.placement.generations['s'] += 1
        self.placement.aggregates['s'] = ['another']
        self.assertFalse(self.trees.look()['h'][1])
        self.assertEqual(['h', 'g'],
                         [each.uuid for each in self.trees.get('h')])

    def test_a_shared_provider_is_deleted(self):
        self.trees.read('h')
        real = self.placement.list_all_providers
        with mock.patch.object(
                self.placement, 'list_all_providers',
                lambda params: [item for item in real(params)
                                if item.uuid != 's']):
            self.assertFalse(self.trees.look()['h'][1])
            self.assertEqual(['h', 'g'],
                             [each.uuid for each in self.trees.get('h')])

    def test_a_look_at_one_host_does_not_list_all(self):
        self.begin('h1', 'h2')
        for uuid in ('h1', 'h2'):
            self.trees.read(uuid)
        self.placement.lists.clear()
        self.assertTrue(self.trees.look_again('h1', 1)[1])
        self.assertEqual([[('in_tree', 'h1')],
                          [('required', provider_tree_cache.SHARES)]],
                         self.placement.lists)
        self.assertEqual(((), False), self.trees.look_again('unknown'))

    def test_a_list_is_as_old_as_it_may_be(self):
        self.begin('h1', 'h2')
        for uuid in ('h1', 'h2'):
            self.trees.read(uuid)
        self.placement.lists.clear()
        self.trees.look()
        self.assertTrue(self.trees.look(max_age_s=100)['h2'][1])
        self.assertTrue(self.trees.look_again('h1', 100)[1])
        self.assertEqual([[]], self.placement.lists)
        # What has changed since is not known, but what was read since is.
        self.placement.generations['g1'] += 1
        self.assertTrue(self.trees.look(max_age_s=100)['h1'][1])
        self.assertFalse(self.trees.look()['h1'][1])
        self.trees.read('h1')
        self.placement.lists.clear()
        self.assertTrue(self.trees.look(max_age_s=1000)['h1'][1])
        self.assertEqual([], self.placement.lists)

    def test_an_outdated_list_is_read_again(self):
        self.trees.read('h')
        self.trees.look()
        self.placement.generations['g'] += 1
        self.assertTrue(self.trees.look(1000)['h'][1])
        self.providers.outdated()
        self.assertFalse(self.trees.look_again('h', 1000)[1])
        self.assertFalse(self.trees.look(1000)['h'][1])

    def test_many_hosts_are_listed_together(self):
        """Their shared providers are read once."""
        hosts = [f'h{number}' for number in range(50)]
        self.begin(*hosts)
        found = self.trees.get_all([*hosts, 'unknown'])
        self.assertEqual((), found.pop('unknown'))
        self.assertEqual([[], [('required', provider_tree_cache.SHARES)]],
                         self.placement.lists)
        self.assertEqual(101, len(self.placement.reads))
        self.assertTrue(all(len(tree) == 3 for tree in found.values()))
        self.placement.lists.clear()
        self.placement.reads.clear()
        self.placement.generations['g7'] += 1
        again = self.trees.get_all(hosts)
        self.assertEqual(['h7', 'g7', 's'], self.placement.reads)
        self.assertEqual([[], [('required', provider_tree_cache.SHARES)]],
                         self.placement.lists)
        self.assertEqual(2, again['h7'][1].generation)
        self.assertEqual({}, self.trees.get_all([]))

    def test_a_root_read_later_by_others_keeps_the_age_of_the_tree(self):
        """The parts read before are older."""
        real = self.placement.get_aggregates

        def get_aggregates(uuid):
            self.providers.read('h')
            return real(uuid)

        with mock.patch.object(self.placement, 'get_aggregates',
                               get_aggregates):
            self.trees.read('h')
        self.assertFalse(self.trees.look()['h'][1])

    def test_trees_read_by_other_threads_meanwhile(self):
        class Root(str):
            """While it is looked for, another thread reads a tree."""

            __slots__ = ()

            def __hash__(self):
                if not threads:
                    threads.append(threading.Thread(
                        target=test.trees.read, args=['h']))
                    threads[0].start()
                    threads[0].join(0.2)
                return super().__hash__()

        test, threads = self, [None]
        known = self.trees.read('h')
        del self.trees._trees['h']
        self.trees._trees[Root('r')] = None
        threads.clear()
        self.trees.look()
        threads[0].join()
        self.assertEqual({'h': (known, True)}, self.trees.look())

    def test_a_server_has_left_the_host(self):
        self.trees.read('h')
        self.providers.changed('h')
        self.assertFalse(self.trees.look()['h'][1])

    def test_a_host_that_is_gone(self):
        with mock.patch.object(self.placement, 'get_provider_state',
                               return_value=None):
            self.assertEqual((), self.trees.read('h'))
