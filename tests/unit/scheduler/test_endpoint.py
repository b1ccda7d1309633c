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

import http.server
import json
import threading
import unittest
from unittest import mock

from keystoneauth1 import loading as ks_loading
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.pci import request as pci_request
from nova.scheduler import utils
from oslo_config import fixture as config_fixture
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt.cloud import request
from nova_preempt.conf import preemption
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


def flavor(**extra_specs):
    return objects.Flavor(
        id=1, flavorid='f', name='f', vcpus=1, memory_mb=1024, root_gb=10,
        ephemeral_gb=0, swap=0, disabled=False, is_public=True,
        extra_specs=extra_specs)


class DevicesTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        conf = self.conf = config_fixture.Config(nova.conf.CONF)
        conf.setUp()
        self.addCleanup(conf.cleanUp)
        conf.config(group='pci', alias=[ALIAS])
        conf.config(group='filter_scheduler', pci_in_placement=True)
        forget_aliases()
        self.addCleanup(forget_aliases)

    def spec(self, **extra_specs):
        with mock.patch.object(endpoint, '_get_flavor',
                               return_value=flavor(**extra_specs)):
            return endpoint.QueryEndpoint(None)._spec(
                nova_context.get_admin_context(), 'f', 'p', 'u', None)

    def groups(self, **extra_specs):
        return request.groups(utils.resources_from_request_spec(
            nova_context.get_admin_context(), self.spec(**extra_specs),
            mock.Mock()))


class TestDevices(DevicesTestCase):

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

    def test_what_cannot_be_told(self):
        with self.assertRaisesRegex(
                exceptions.NoAnswer, 'which devices flavor f asks for'):
            self.spec(**{'pci_passthrough:alias': 'unknown:2'})

    def test_who_asks_for_none(self):
        self.assertEqual(['VCPU', 'MEMORY_MB', 'DISK_GB'],
                         list(self.groups().resources))


class Cyborg(http.server.BaseHTTPRequestHandler):
    """Has one profile, and shows it to who has the token."""

    def do_GET(self):
        path, _, query = self.path.partition('?')
        if path.rstrip('/') == '/v2':
            # New releases of Nova look at it first.
            code, body = 200, {'version': {
                'id': 'v2.0', 'status': 'CURRENT', 'links': [
                    {'rel': 'self',
                     'href': f'http://{self.headers["Host"]}/v2/'}]}}
        elif self.headers.get('X-Auth-Token') != 'ours':
            code, body = 401, {}
        elif path != '/v2/device_profiles':
            code, body = 404, {}
        else:
            code, body = 200, {'device_profiles': [
                {'groups': [{'resources:FPGA': '1'}]}]
                if query == 'name=fast' else []}
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


class TestDeviceProfiles(DevicesTestCase):
    """Cyborg is asked in our name: no token of the user's comes to us."""

    def setUp(self):
        super().setUp()
        server = http.server.HTTPServer(('127.0.0.1', 0), Cyborg)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.url = f'http://127.0.0.1:{server.server_port}/v2'
        self.conf.config(group='cyborg', endpoint_override=self.url)
        self.log_in('ours')

    def log_in(self, token):
        preemption.register_opts(nova.conf.CONF)
        nova.conf.CONF.register_opts(
            ks_loading.get_auth_plugin_conf_options('admin_token'),
            group=preemption.GROUP)
        self.conf.config(group=preemption.GROUP, auth_type='admin_token',
                         endpoint=self.url, token=token)

    def assert_no_answer(self, why, profile='fast'):
        with self.assertRaisesRegex(exceptions.NoAnswer, why):
            self.spec(**{'accel:device_profile': profile})

    def test_it_is_asked_with_our_credentials(self):
        wanted = self.groups(**{'accel:device_profile': 'fast'})
        self.assertEqual([{'FPGA': 1}], [
            each.resources for each in wanted.groups if each.suffix])

    def test_a_profile_that_is_not_there(self):
        self.assert_no_answer('which devices flavor f asks for.*slow', 'slow')

    def test_credentials_that_are_refused(self):
        self.log_in('theirs')
        self.assert_no_answer('Cyborg')

    def test_without_credentials(self):
        self.conf.config(group=preemption.GROUP, auth_type=None)
        self.assert_no_answer(r'\[preemption\], which has none')

    def chances(self, *names):
        flavors = {'fast': flavor(**{'accel:device_profile': 'fast'}),
                   'slow': flavor(**{'accel:device_profile': 'slow'}),
                   'none': flavor()}
        asked = endpoint.QueryEndpoint(mock.Mock())
        with mock.patch.object(
                endpoint, '_get_flavor',
                side_effect=lambda context, name, project: flavors[name]), (
                mock.patch.object(asked, '_count', return_value={
                    'az': (1, 2)})):
            return [(each['flavor'], each['availability_zone'],
                     each['preemptible'], each['normal'])
                    for each in asked.placement_chances(
                        nova_context.get_admin_context(), names, 'p')]

    def test_the_others_have_an_answer(self):
        with self.assertLogs('nova_preempt.scheduler.endpoint') as logs:
            found = self.chances('slow', 'none', 'fast')
        self.assertEqual([('slow', None, None, None), ('none', 'az', 1, 3),
                          ('fast', 'az', 1, 3)], found)
        self.assertIn('flavor slow', logs.output[0])

    def test_none_has(self):
        raised = self.assertRaises(messaging.ExpectedException)
        with self.assertLogs('nova_preempt.scheduler.endpoint'), raised:
            self.chances('slow')
        self.assertIsInstance(raised.exception.exc_info[1],
                              exceptions.NoAnswer)
