# SPDX-License-Identifier: Apache-2.0

import unittest
import urllib.parse

from nova import objects

from nova_preempt.cloud import request_specs
from nova_preempt.core.model import Request, RequestGroup


class Asked:
    """Stands for the used part of Nova's ResourceRequest."""

    def __init__(self, *params):
        self._params = params

    def to_querystring(self):
        return urllib.parse.urlencode(self._params)

    def get_num_of_suffixed_groups(self):
        return sum(name.startswith('resources_') for name, _ in self._params)

    def merged_resources(self):
        return {name: int(amount) for key, value in self._params
                if key.startswith('resources')
                for name, amount in (item.split(':')
                                     for item in value.split(','))}


class TestGroups(unittest.TestCase):

    def test_requests_of_one_provider(self):
        asked = Asked(('resources', 'VCPU:1,MEMORY_MB:2'),
                      ('required', 'HW_CPU_X86_AVX'), ('limit', '1000'))
        self.assertEqual(Request.of({'VCPU': 1, 'MEMORY_MB': 2}),
                         request_specs.groups(asked))
        self.assertEqual([('required', 'HW_CPU_X86_AVX')],
                         request_specs.provider_query(asked))

    def test_groups(self):
        asked = Asked(
            ('resources', 'VCPU:1'), ('resources_g', 'CUSTOM_GPU:1'),
            ('required_g', 'CUSTOM_A,!CUSTOM_B'),
            ('member_of_g', 'in:a,b'), ('member_of_g', '!in:c'),
            ('in_tree_g', 'h'), ('group_policy', 'isolate'),
            ('same_subtree', '_g,_h'), ('root_required', 'X,!Y'),
            ('required', 'HW_CPU_X86_AVX'), ('limit', '1000'))
        self.assertEqual(
            Request(
                (RequestGroup({'VCPU': 1}, required=frozenset((
                    'HW_CPU_X86_AVX',))),
                 RequestGroup({'CUSTOM_GPU': 1}, '_g', frozenset((
                     'CUSTOM_A',)),
                              frozenset(('CUSTOM_B',)), (frozenset('ab'),),
                              frozenset('c'), 'h')),
                isolate=True, same_subtree=(frozenset(('_g', '_h')),)),
            request_specs.groups(asked))
        # The traits of groups are those of whatever serves them.
        self.assertEqual([('required', '!Y,X')],
                         request_specs.provider_query(asked))


class TestWhyNotServed(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        objects.register_all()

    def why(self, *asked, in_placement=True, filters=('PciPassthroughFilter',
                                                      'NUMATopologyFilter')):
        spec_obj = objects.RequestSpec()
        spec_obj.pci_requests = objects.InstancePCIRequests(
            requests=list(asked))
        return request_specs.why_not_served(spec_obj, in_placement, filters)

    def test_no_devices(self):
        self.assertEqual('', self.why(in_placement=False, filters=()))
        self.assertEqual('', request_specs.why_not_served(
            objects.RequestSpec(), False, ()))

    def test_devices_of_a_flavor_have_to_be_in_placement(self):
        card = objects.InstancePCIRequest(count=1, alias_name='card')
        self.assertEqual('', self.why(card))
        self.assertIn('pci_in_placement is false',
                      self.why(card, in_placement=False))

    def test_devices_are_not_served_without_the_filter(self):
        for asked in (objects.InstancePCIRequest(count=1, alias_name='card'),
                      objects.InstancePCIRequest(count=1)):
            self.assertIn('PciPassthroughFilter',
                          self.why(asked, filters=('NUMATopologyFilter',)))

    def test_ports_are_never_in_placement(self):
        self.assertEqual('', self.why(objects.InstancePCIRequest(count=1),
                                      in_placement=False))
