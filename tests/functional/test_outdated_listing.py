# SPDX-License-Identifier: Apache-2.0
"""Requests whose hosts were read before other servers were placed there."""

from unittest import mock

from nova_preempt.core.scheduling import cloud_view
from tests.functional import base


class TestOutdatedListing(base.PreemptionTestCase):

    def test_hosts_that_looked_free_get_victims(self):
        """The background reading does not know of the last boots yet."""
        self.add_hosts('host1', 'host2')
        first = self.boot_spot('first', 'host1')
        for name, host in (('second', 'host1'), ('third', 'host2'),
                           ('fourth', 'host2')):
            self.wait(self.boot(name, self.small, host=host))
        # It searches for victims, so that such searches are remembered.
        normal = self.boot_normal()
        self.assertNotIn(first, self.alive())
        for server in self.alive():
            self.api.delete_server(server)
            self.wait_gone(server)
        with mock.patch.object(cloud_view, 'LIST_MAX_AGE_S', 60.0):
            # As the periodic task does.
            self.scheduler.preemption.known.servers.refresh()
            self.scheduler.preemption.known.providers.refresh(None)
            for name, host in (('a', 'host1'), ('b', 'host1'),
                               ('c', 'host2'), ('d', 'host2')):
                self.boot_spot(name, host)
            normal = self.boot_normal('normal')
        self.assertIn(normal['OS-EXT-SRV-ATTR:host'], ('host1', 'host2'))
        self.assertEqual(4, len(self.alive()))
