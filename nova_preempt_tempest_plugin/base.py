# SPDX-License-Identifier: Apache-2.0
"""Base class of the tests, with helpers for flavors and servers."""

import time

from tempest import config
from tempest import test
from tempest.common import compute
from tempest.common import waiters
from tempest.lib import exceptions
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils

CONF = config.CONF


class PreemptionTest(test.BaseTestCase):
    """Base class with clients of a member and of an administrator."""

    credentials = ['primary', 'admin']

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.service_available.nova_preempt:
            raise cls.skipException('nova-preempt is not there')

    @classmethod
    def setup_clients(cls):
        super().setup_clients()
        cls.client = cls.os_primary.preemption_v1.PreemptionClient()
        cls.admin_client = cls.os_admin.preemption_v1.PreemptionClient()
        cls.servers_client = cls.os_primary.servers_client
        cls.flavors_client = cls.os_admin.flavors_client

    @classmethod
    def create_flavor(cls, preemptible=False, ram=64, **values):
        """Create the smallest flavor and return its id.

        :param preemptible: whether its servers are evicted, without notice
        """
        name = data_utils.rand_name(
            prefix=CONF.resource_name_prefix, name=cls.__name__)
        flavor = cls.flavors_client.create_flavor(
            name=name, ram=ram, vcpus=1, disk=values.pop('disk', 1),
            **values)['flavor']
        cls.addClassResourceCleanup(
            test_utils.call_and_ignore_notfound_exc,
            cls.flavors_client.delete_flavor, flavor['id'])
        if preemptible:
            cls.flavors_client.set_flavor_extra_spec(
                flavor['id'], **{'preemptible:enabled': 'true',
                                 'preemptible:notice_s': '0',
                                 'preemptible:action': 'delete'})
        return flavor['id']

    def create_server(self, flavor, wait_until='ACTIVE', **values):
        """Create a server, to be deleted at the end, and return its id."""
        server, _ = compute.create_test_server(
            self.os_primary, tenant_network=self.get_tenant_network(),
            flavor=flavor, wait_until=wait_until, **values)
        self.addCleanup(self.delete_server, server['id'])
        return server['id']

    def delete_server(self, server_id):
        test_utils.call_and_ignore_notfound_exc(
            self.servers_client.delete_server, server_id)
        waiters.wait_for_server_termination(self.servers_client, server_id)

    def is_there(self, server_id):
        try:
            self.servers_client.show_server(server_id)
        except exceptions.NotFound:
            return False
        return True

    def wait_for(self, what, condition):
        """Wait until the condition is true, and return its result."""
        end = time.time() + CONF.preemption.end_timeout
        while not (found := condition()):
            if time.time() > end:
                raise exceptions.TimeoutException(
                    f'{what}, within {CONF.preemption.end_timeout} s')
            time.sleep(1)
        return found
