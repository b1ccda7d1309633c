# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What questions about a flavor ask for: as a boot of it would."""

import unittest
from unittest import mock

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.accelerator import cyborg
import nova.conf
from nova.pci import request as pci_request
from nova.scheduler import utils
from oslo_config import fixture as config_fixture

from nova_preempt import exceptions
from nova_preempt.cloud import request
from nova_preempt.core import fitting
from nova_preempt.core import model
from nova_preempt.scheduler import endpoint

objects.register_all()

ALIAS = '{"vendor_id": "10de", "product_id": "20b0", "name": "gpu"}'
GPU = 'CUSTOM_PCI_10DE_20B0'


def forget_aliases():
    """New releases of Nova read them once for all."""
    known = getattr(pci_request, 'get_alias_from_config', None)
    if hasattr(known, 'cache_clear'):
        known.cache_clear()


class TestDevices(unittest.TestCase):

    def setUp(self):
        super().setUp()
        conf = config_fixture.Config(nova.conf.CONF)
        conf.setUp()
        self.addCleanup(conf.cleanUp)
        conf.config(group='pci', alias=[ALIAS])
        conf.config(group='filter_scheduler', pci_in_placement=True)
        forget_aliases()
        self.addCleanup(forget_aliases)

    def spec(self, **extra_specs):
        flavor = objects.Flavor(
            id=1, flavorid='f', name='f', vcpus=1, memory_mb=1024, root_gb=10,
            ephemeral_gb=0, swap=0, disabled=False, is_public=True,
            extra_specs=extra_specs)
        with mock.patch.object(endpoint, '_get_flavor', return_value=flavor):
            return endpoint.QueryEndpoint(None)._spec(
                nova_context.get_admin_context(), 'f', 'p', 'u', None)

    def groups(self, **extra_specs):
        return request.groups(utils.resources_from_request_spec(
            nova_context.get_admin_context(), self.spec(**extra_specs),
            mock.Mock()))

    def test_the_alias_of_a_flavor(self):
        wanted = self.groups(**{'pci_passthrough:alias': 'gpu:2'})
        self.assertEqual([{GPU: 1}] * 2, [
            group.resources for group in wanted.groups if group.suffix])
        host = model.Host('host', (
            model.Provider('h', 1, {
                name: model.Inventory(10_000) for name in (
                    'VCPU', 'MEMORY_MB', 'DISK_GB')}, {}),
            *(model.Provider(f'g{number}', 1, {GPU: model.Inventory(1)},
                             {'spot': {GPU: 1}}, 'h')
              for number in range(5))))
        self.assertEqual(0, fitting.count(wanted, host, {}))
        freed = {(f'g{number}', GPU): 1 for number in range(5)}
        self.assertEqual(2, fitting.count(wanted, host, freed))
        # Nova's own filter is asked for each device, too.
        asked, = self.spec(
            **{'pci_passthrough:alias': 'gpu:2'}).pci_requests.requests
        self.assertEqual(2, asked.count)

    def test_a_device_profile(self):
        group = objects.RequestGroup(requester_id='device_profile_0',
                                     resources={'FPGA': 1})
        with mock.patch.object(cyborg, 'get_device_profile_request_groups',
                               return_value=[group]) as ask:
            wanted = self.groups(**{'accel:device_profile': 'fast'})
        self.assertEqual('fast', ask.call_args.args[1])
        self.assertEqual([{'FPGA': 1}], [
            each.resources for each in wanted.groups if each.suffix])

    def test_what_cannot_be_told(self):
        with self.assertRaisesRegex(
                exceptions.NoAnswer, 'which devices flavor f asks for'):
            self.spec(**{'pci_passthrough:alias': 'unknown:2'})
        with mock.patch.object(
                cyborg, 'get_device_profile_request_groups',
                side_effect=exception.DeviceProfileError(
                    name='fast', msg='away')), (
                self.assertRaises(exceptions.NoAnswer)):
            self.spec(**{'accel:device_profile': 'fast'})

    def test_who_asks_for_none(self):
        self.assertEqual(['VCPU', 'MEMORY_MB', 'DISK_GB'],
                         list(self.groups().resources))
