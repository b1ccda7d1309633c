# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import threading
import unittest
from unittest import mock

from nova_preempt.cloud import placement
from nova_preempt.cloud import providers
from nova_preempt.cloud import trees
from nova_preempt.core import model


class FakePlacement:
    """A host with a GPU, and storage that it shares."""

    def __init__(self):
        self.generations = {'h': 1, 'g': 1, 's': 1}
        self.used = {}
        self.reads = []

    def list_all_providers(self, params):
        listed = [
            placement.Provider('h', 'host', self.generations['h'], 'h'),
            placement.Provider('g', 'gpu', self.generations['g'], 'h', 'h')]
        share = placement.Provider('s', 'share', self.generations['s'], 's')
        if ('required', trees.SHARES) in params:
            return [share]
        if params == [('in_tree', 'h')]:
            return listed
        return [] if params else [*listed, share]

    def get_provider_state(self, uuid, known=None):
        self.reads.append(uuid)
        return model.Provider(uuid, self.generations[uuid],
                              {uuid.upper(): model.Inventory(2)},
                              dict(self.used.get(uuid, {})))

    def get_traits(self, uuid):
        return [f'CUSTOM_{uuid.upper()}']

    def get_aggregates(self, uuid):
        return [] if uuid == 'g' else ['agg']


class TestTrees(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.placement = FakePlacement()
        self.clock = mock.Mock(side_effect=range(1, 1000))
        self.providers = providers.ProviderCache(self.placement, self.clock)
        self.trees = trees.TreeCache(self.placement, self.providers)

    def test_the_root_first_and_what_is_shared_last(self):
        tree = self.trees.read('h')
        self.assertEqual(['host', 'gpu', 'share'],
                         [each.name for each in tree])
        self.assertEqual(['', 'h', ''], [each.parent_uuid for each in tree])
        self.assertEqual({'CUSTOM_G'}, tree[1].traits)
        self.assertEqual({'s'}, model.Host('host', tree).shared)

    def test_it_is_read_once(self):
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

    def test_a_change_of_what_is_shared(self):
        self.trees.read('h')
        self.placement.generations['s'] += 1
        self.placement.used['s'] = {'a': {'S': 1}}
        self.assertFalse(self.trees.look()['h'][1])
        self.assertEqual({'a': {'S': 1}}, self.trees.get('h')[2].allocations)

    def test_a_root_that_others_read_later(self):
        """What was read before that is not as new."""
        real = self.placement.get_aggregates

        def get_aggregates(uuid):
            self.providers.read('h')
            return real(uuid)

        with mock.patch.object(self.placement, 'get_aggregates',
                               get_aggregates):
            self.trees.read('h')
        self.assertFalse(self.trees.look()['h'][1])

    def test_trees_that_other_threads_read_meanwhile(self):
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
