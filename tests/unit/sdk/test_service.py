# SPDX-License-Identifier: Apache-2.0
"""Tests of the discovery of the service and its version."""

import json
from unittest import mock

import openstack
from openstack import exceptions

from nova_preempt import sdk
from nova_preempt.api import microversion
from nova_preempt.sdk.v1 import _proxy
from tests.unit.sdk import base


class TestRegistration(base.SdkTestCase):

    def write(self, **values):
        """A clouds.yaml, which JSON is, for a Keystone with our catalog."""
        (self.directory / 'clouds.yaml').write_text(json.dumps({'clouds': {
            'mine': {'auth': {
                'auth_url': self.keystone(self.url), 'username': 'u',
                'password': 'x', 'project_name': 'p', 'user_domain_id': 'd',
                'project_domain_id': 'd'}, **values}}}))

    def check(self, conn):
        self.assertIsInstance(conn.preemption, _proxy.Proxy)
        self.assertEqual([], list(conn.preemption.preemptions()))

    def test_by_hand(self):
        self.write()
        self.check(self.opened(sdk.add_to(openstack.connect(cloud='mine'))))

    def test_twice(self):
        self.check(sdk.add_to(self.connect()))

    def test_in_clouds_yaml(self):
        self.write(vendor_hook='nova_preempt.sdk:add_to')
        self.check(self.opened(openstack.connect(cloud='mine')))

    def test_endpoints(self):
        for url in (self.url, f'{self.url}/', f'{self.url}/v1'):
            self.check(self.connect(preemption_endpoint_override=url))

    def test_the_service_is_not_in_the_catalog(self):
        with mock.patch.object(self, 'url', None):
            self.write()
        conn = self.opened(sdk.add_to(openstack.connect(cloud='mine')))
        self.assertIn('catalog', self.raised(
            Exception, lambda: conn.preemption.preemptions()))


class TestVersions(base.SdkTestCase):

    def test_an_old_service(self):
        with mock.patch.object(microversion, 'VERSIONS', ('1.0',)):
            service = self.connect().preemption
            self.assertEqual([], list(service.preemptions()))
            for listed, needed in ((service.reservations, '1.1'),
                                   (service.pauses, '1.2')):
                self.assertIn(f'needs microversion {needed}', self.raised(
                    exceptions.NotSupported, next, listed()))

    def test_a_version_that_is_configured(self):
        for version, too_old in (('1.0', True), ('1.1', False),
                                 ('1.2', False)):
            service = self.connect(
                preemption_default_microversion=version).preemption
            self.assertEqual([], list(service.preemptions()))
            if too_old:
                self.raised(exceptions.NotSupported, service.get_reservation,
                            'x')
            else:
                self.assertEqual([], list(service.reservations()))
