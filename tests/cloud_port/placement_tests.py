# SPDX-License-Identifier: Apache-2.0
"""Tests of Placement that pass on it and on the one in memory."""

import uuid

from nova_preempt.cloud import placement_api

CPUS = {'VCPU': 4, 'MEMORY_MB': 4096}


def _consumer(allocations, generation=None, consumer=None, project='project'):
    """A Consumer with {provider: {class: amount}}."""
    return placement_api.Consumer(
        consumer or str(uuid.uuid4()),
        {provider: {'resources': resources}
         for provider, resources in allocations.items()},
        generation, project, 'user')


class PlacementTests:
    """Run by a test case with the attributes below.

    :ivar port: a placement_api.Placement
    :ivar ask: given a method, a URL and perhaps a body, returns a response
    :ivar add_provider: given a name, {class: amount} and traits, adds a
        provider and returns its uuid
    """

    def setUp(self):
        super().setUp()
        self.first = self.add_provider('first', CPUS, ['HW_CPU_X86_AVX'])
        self.second = self.add_provider('second', CPUS)

    def claim(self, *providers, vcpus=1):
        """Write allocations; return the Consumer as Placement has it then."""
        wanted = _consumer({each: {'VCPU': vcpus} for each in providers})
        self.port.post_allocations([wanted])
        return self.port.get_consumer(wanted.uuid)

    def generations(self):
        return tuple(self.port.get_provider_state(each).generation
                     for each in (self.first, self.second))

    def raised_by(self, function, *args):
        """Return by how much a write raises the generations of both providers.
        """
        before = self.generations()
        function(*args)
        return tuple(after - earlier for earlier, after in zip(
            before, self.generations(), strict=True))

    def refusal(self, *consumers):
        """The code with which Placement refuses a write of allocations."""
        before = self.used(), self.generations()
        code = None
        try:
            self.port.post_allocations(consumers)
        except placement_api.Conflict as exc:
            code = exc.code
        self.assertEqual(before, (self.used(), self.generations()))
        return code

    def used(self):
        return [dict(self.port.get_provider_state(each).allocations)
                for each in (self.first, self.second)]

    # -- consumers -------------------------------------------------------

    def test_new_consumer(self):
        found = self.claim(self.first)
        self.assertEqual((1, 'project', 'user', {(self.first, 'VCPU'): 1}), (
            found.generation, found.project_id, found.user_id, found.slots))
        self.assertEqual([{found.uuid: {'VCPU': 1}}, {}], self.used())

    def test_unknown_consumer(self):
        found = self.port.get_consumer(str(uuid.uuid4()))
        self.assertEqual((None, {}), (found.generation, found.allocations))

    def test_each_write_raises_the_generation_of_a_consumer(self):
        found = self.claim(self.first)
        self.port.post_allocations([found])
        again = self.port.get_consumer(found.uuid)
        self.assertEqual(2, again.generation)
        response = self.ask('put', f'/allocations/{found.uuid}', again.body())
        self.assertEqual(204, response.status_code)
        self.assertEqual(3, self.port.get_consumer(found.uuid).generation)

    def test_outdated_generation(self):
        found = self.claim(self.first)
        for generation in (None, 0, 2):
            outdated = _consumer({self.first: {'VCPU': 2}}, generation,
                                 found.uuid)
            self.assertEqual(placement_api.CONCURRENT_UPDATE,
                             self.refusal(outdated))
            response = self.ask('put', f'/allocations/{found.uuid}',
                                outdated.body())
            self.assertEqual(409, response.status_code)

    def test_generation_of_an_unknown_consumer(self):
        self.assertEqual(
            placement_api.CONCURRENT_UPDATE,
            self.refusal(_consumer({self.first: {'VCPU': 1}}, 1)))

    def test_emptied_consumer_is_gone(self):
        found = self.claim(self.first)
        self.port.post_allocations([found.with_allocations({})])
        empty = self.port.get_consumer(found.uuid)
        self.assertEqual((None, {}), (empty.generation, empty.allocations))
        self.assertEqual(placement_api.CONCURRENT_UPDATE, self.refusal(found))
        self.port.post_allocations([_consumer(
            {self.first: {'VCPU': 1}}, None, found.uuid)])
        self.assertEqual(1, self.port.get_consumer(found.uuid).generation)

    def test_empty_allocations_of_a_new_consumer_leave_it_behind(self):
        """Placement creates it, but its generation cannot be read."""
        unknown = _consumer({})
        self.port.post_allocations([unknown])
        self.assertIsNone(self.port.get_consumer(unknown.uuid).generation)
        self.assertEqual(
            placement_api.CONCURRENT_UPDATE,
            self.refusal(_consumer({self.first: {'VCPU': 1}}, None,
                                   unknown.uuid)))
        self.assertEqual(404, self.ask(
            'delete', f'/allocations/{unknown.uuid}').status_code)
        self.port.post_allocations([_consumer(
            {self.first: {'VCPU': 1}}, 0, unknown.uuid)])
        self.assertEqual(1, self.port.get_consumer(unknown.uuid).generation)

    def test_deleted_consumer_is_gone(self):
        found = self.claim(self.first, self.second)
        self.port.delete_allocations(found.uuid)
        self.assertIsNone(self.port.get_consumer(found.uuid).generation)
        self.assertEqual([{}, {}], self.used())
        self.assertEqual(404, self.ask(
            'delete', f'/allocations/{found.uuid}').status_code)

    def test_a_write_changes_the_project(self):
        found = self.claim(self.first)
        self.port.post_allocations([_consumer(
            {self.first: {'VCPU': 1}}, 1, found.uuid, 'another')])
        self.assertEqual('another',
                         self.port.get_consumer(found.uuid).project_id)

    # -- several consumers -----------------------------------------------

    def test_allocations_move_from_one_consumer_to_another(self):
        """The provider has no other free capacity."""
        source = self.claim(self.first, vcpus=4)
        target = _consumer({self.first: {'VCPU': 4}})
        self.port.post_allocations([target, source.with_allocations({})])
        self.assertEqual([{target.uuid: {'VCPU': 4}}, {}], self.used())

    def test_one_outdated_generation_refuses_all(self):
        known = self.claim(self.first)
        self.assertEqual(placement_api.CONCURRENT_UPDATE, self.refusal(
            _consumer({self.second: {'VCPU': 1}}),
            _consumer({self.first: {'VCPU': 2}}, 7, known.uuid)))

    def test_too_much_for_one_refuses_all(self):
        self.assertEqual(placement_api.NO_ROOM, self.refusal(
            _consumer({self.second: {'VCPU': 1}}),
            _consumer({self.first: {'VCPU': 5}})))

    def test_refused_new_consumer_is_gone(self):
        wanted = _consumer({self.first: {'VCPU': 5}})
        self.assertEqual(placement_api.NO_ROOM, self.refusal(wanted))
        self.port.post_allocations([_consumer(
            {self.first: {'VCPU': 1}}, None, wanted.uuid)])

    # -- capacity --------------------------------------------------------

    def test_too_much(self):
        self.claim(self.first, vcpus=3)
        self.assertEqual(placement_api.NO_ROOM, self.refusal(
            _consumer({self.first: {'VCPU': 2}})))
        self.assertEqual(placement_api.NO_ROOM, self.refusal(
            _consumer({self.first: {'VCPU': 1}}),
            _consumer({self.first: {'VCPU': 1}})))

    def test_replaced_allocations_do_not_count(self):
        found = self.claim(self.first, vcpus=3)
        self.port.post_allocations([_consumer(
            {self.first: {'VCPU': 4}}, 1, found.uuid)])
        self.assertEqual({'VCPU': 0, 'MEMORY_MB': 4096}, dict(
            self.port.get_provider_state(self.first).all_free))

    def test_class_without_inventory(self):
        self.assertEqual(placement_api.NO_ROOM, self.refusal(
            _consumer({self.first: {'DISK_GB': 1}})))
        self.assertEqual(placement_api.NO_ROOM, self.refusal(
            _consumer({self.first: {'VCPU': 1, 'DISK_GB': 1}})))

    def test_unknown_class(self):
        for amounts in ({'CUSTOM_NONE': 1}, {'VCPU': 1, 'CUSTOM_NONE': 1}):
            self.assertRaises(
                placement_api.PlacementError, self.port.post_allocations,
                [_consumer({self.first: amounts})])
        self.assertEqual([{}, {}], self.used())

    def test_amounts_are_positive(self):
        for amounts in ({}, {'VCPU': 0}, {'VCPU': -1}):
            self.assertRaises(
                placement_api.PlacementError, self.port.post_allocations,
                [_consumer({self.first: amounts})])
        self.assertEqual([{}, {}], self.used())

    def test_unknown_provider(self):
        self.assertEqual('', self.refusal(_consumer({
            self.first: {'VCPU': 1}, str(uuid.uuid4()): {'VCPU': 1}})))

    # -- generations of providers ----------------------------------------

    def test_new_and_changed_allocations_raise_the_provider(self):
        wanted = _consumer({self.first: {'VCPU': 1}})
        self.assertEqual((1, 0), self.raised_by(
            self.port.post_allocations, [wanted]))
        self.assertEqual((1, 0), self.raised_by(
            self.port.post_allocations, [self.port.get_consumer(wanted.uuid)]))

    def test_two_consumers_of_a_write_raise_it_once(self):
        self.assertEqual((1, 1), self.raised_by(self.port.post_allocations, [
            _consumer({self.first: {'VCPU': 1}}),
            _consumer({self.first: {'VCPU': 1}, self.second: {'VCPU': 1}})]))

    def test_emptied_allocations_raise_the_provider(self):
        found = self.claim(self.first)
        self.assertEqual((1, 0), self.raised_by(
            self.port.post_allocations, [found.with_allocations({})]))

    def test_deleted_allocations_raise_nothing(self):
        found = self.claim(self.first)
        self.assertEqual((0, 0), self.raised_by(
            self.port.delete_allocations, found.uuid))

    def test_a_move_raises_the_new_provider_alone(self):
        found = self.claim(self.first)
        self.assertEqual((0, 1), self.raised_by(
            self.port.post_allocations, [found.with_allocations(
                {self.second: {'resources': {'VCPU': 1}}})]))
        self.assertEqual([{}, {found.uuid: {'VCPU': 1}}], self.used())

    # -- readings --------------------------------------------------------

    def test_provider(self):
        found = self.port.get_provider_state(self.first)
        self.assertEqual({'VCPU': 4, 'MEMORY_MB': 4096}, {
            name: item.capacity for name, item in found.inventories.items()})
        self.assertEqual(['HW_CPU_X86_AVX'], self.port.get_traits(self.first))
        self.assertEqual([], self.port.get_traits(self.second))
        self.assertEqual([], self.port.get_aggregates(self.first))

    def test_unknown_provider_is_read_as_none(self):
        unknown = str(uuid.uuid4())
        self.assertIsNone(self.port.get_provider_state(unknown))
        self.assertEqual([], self.port.get_traits(unknown))
        self.assertEqual([], self.port.get_aggregates(unknown))

    def names(self, *params):
        return sorted(each.name for each in self.port.list_providers(params))

    def test_listing(self):
        both = ['first', 'second']
        for expected, params in (
                (both, []), (['first'], [('name', 'first')]),
                ([], [('name', 'none')]),
                (['second'], [('uuid', self.second)]),
                (['second'], [('in_tree', self.second)]),
                ([], [('in_tree', str(uuid.uuid4()))]),
                (['first'], [('required', 'HW_CPU_X86_AVX')]),
                (['second'], [('required', '!HW_CPU_X86_AVX')]),
                (both, [('resources', 'VCPU:4,MEMORY_MB:1')]),
                ([], [('resources', 'VCPU:5')])):
            self.assertEqual(expected, self.names(*params), params)

    def test_listing_by_free_capacity(self):
        self.claim(self.first)
        self.assertEqual(['second'], self.names(('resources', 'VCPU:4')))

    def test_listed_provider(self):
        found, = self.port.list_providers([('name', 'first')])
        self.assertEqual(
            placement_api.Provider(self.first, 'first',
                                   self.generations()[0], self.first), found)

    def test_traits_that_providers_have(self):
        self.assertEqual(['HW_CPU_X86_AVX'], self.port.list_traits())

    def test_consumers_of_a_provider(self):
        found = self.claim(self.first)
        self.assertEqual({found.uuid},
                         self.port.get_consumers_in_tree(self.first))
        self.assertEqual(set(), self.port.get_consumers_in_tree(self.second))

    # -- candidates ------------------------------------------------------

    def test_room(self):
        self.claim(self.first, vcpus=3)
        found = self.port.get_room({'VCPU': 1})
        self.assertEqual([1, 4], [
            found[each]['VCPU'] for each in (self.first, self.second)])
        self.assertEqual({self.second}, self.port.get_room(
            {'VCPU': 2, 'MEMORY_MB': 1}).keys())
        self.assertEqual(1, len(self.port.get_room({'VCPU': 1}, most=1)))
        self.assertEqual({}, self.port.get_room({'VCPU': 5}))
        self.assertEqual({}, self.port.get_room({'DISK_GB': 1}))
        self.assertEqual({}, self.port.get_room({'CUSTOM_NONE': 1}))

    def candidates(self, query):
        body = self.ask('get', f'/allocation_candidates?{query}').json()
        self.assertEqual(
            {uuid for item in body['allocation_requests']
             for uuid in item['allocations']},
            body['provider_summaries'].keys())
        return body

    def test_candidates(self):
        body = self.candidates('resources=VCPU:1,MEMORY_MB:512'
                               '&required=HW_CPU_X86_AVX')
        self.assertEqual([{
            'allocations': {self.first: {'resources': {
                'VCPU': 1, 'MEMORY_MB': 512}}},
            'mappings': {'': [self.first]}}], body['allocation_requests'])
        self.assertEqual({
            'resources': {'VCPU': {'capacity': 4, 'used': 0},
                          'MEMORY_MB': {'capacity': 4096, 'used': 0}},
            'traits': ['HW_CPU_X86_AVX'], 'parent_provider_uuid': None,
            'root_provider_uuid': self.first},
            body['provider_summaries'][self.first])

    def test_candidates_by_trait_and_tree(self):
        for expected, query in (
                ([self.second], 'required=!HW_CPU_X86_AVX'),
                ([self.first], 'root_required=HW_CPU_X86_AVX'),
                ([self.second], f'in_tree={self.second}'),
                ([], f'in_tree={self.second}&required=HW_CPU_X86_AVX')):
            body = self.candidates(f'resources=VCPU:1&{query}')
            self.assertEqual(expected, list(body['provider_summaries']))
