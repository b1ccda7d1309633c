# SPDX-License-Identifier: Apache-2.0
"""Tests of samples for eviction rates."""

import collections.abc
import datetime
import unittest
from unittest import mock

from nova_preempt import metrics
from nova_preempt.advice import eviction_sampler
from nova_preempt.db import decisions
from nova_preempt.db import eviction_samples
from nova_preempt.db import models
from tests.unit.handover import test_process_lease

HOUR = datetime.timedelta(hours=1)


class TestSamples(test_process_lease.OwnerTestCase):

    def test_hosts_and_nodes_have_zones(self):
        """A decision names the host of a service, a server its node."""
        parts, inventory = mock.Mock(), mock.Mock()
        inventory.hosts.return_value = {'node1': mock.Mock(
            service_host='host1', properties={'availability_zone': 'az1'})}
        inventory.hosts.return_value['node1'].name = 'node1'
        parts.process.db = self.db
        parts.known.servers.servers.return_value = [mock.Mock(
            flavor='spot', node='node1', project_id='p')]
        sampler = eviction_sampler.EvictionSampler(parts, inventory)
        now = datetime.datetime(2026, 11, 20, 12)
        with mock.patch.object(eviction_sampler.timeutils, 'utcnow',
                               return_value=now):
            sampler.run()
        decisions.Decisions(self.db).create_decision(decisions.Decision(
            'd', '', status='done', host='host1', operation='headroom',
            victims=(decisions.Victim(
                'v', 'p', flavor='spot', status='gone',
                ended_at=now + HOUR / 2, lifetime_s=60),)))
        with mock.patch.object(eviction_sampler.timeutils, 'utcnow',
                               return_value=now + HOUR):
            self.assertEqual(3600, sampler.run())
        for hours in (24, 720):
            self.assertEqual([1, 60], [
                each.labels('spot', 'az1', hours)._value.get()
                for each in (metrics.EVICTED_SHARE, metrics.EVICTED_LIFE)])
        samples = eviction_samples.read(self.db, ['spot'])
        self.assertEqual([('az1', 1, 0, []), ('az1', 1, 3600, [60])], [
            (item.zone, item.servers, item.server_s, item.lifetimes_s)
            for item in samples])
        self.assertEqual([], list(eviction_samples.read(self.db, ['big'])))

    def test_few_samples_are_in_memory_at_once(self):
        now = datetime.datetime(2026, 11, 20, 12)
        with self.db.writer() as session:
            session.add_all(models.EvictionSample(
                at=now, flavor='spot', zone='', project_id=f'p{number}',
                servers=1, server_s=number, lifetimes_s=[])
                for number in range(5))
        with mock.patch.object(eviction_samples, '_MOST', 2):
            found = eviction_samples.read(self.db)
            self.assertIsInstance(found, collections.abc.Iterator)
            self.assertEqual([0, 1, 2, 3, 4],
                             sorted(item.server_s for item in found))


if __name__ == '__main__':
    unittest.main()
