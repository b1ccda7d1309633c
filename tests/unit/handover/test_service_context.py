# SPDX-License-Identifier: Apache-2.0
"""Tests of background readings of hosts."""

from unittest import mock

from oslo_utils import timeutils

from nova_preempt.cloud import placement_api
from nova_preempt.core import model
from nova_preempt.db import energy_store
from nova_preempt.handover import service_context
from tests.unit.power import world


class TestKnowledge(world.WorldTestCase):

    def test_hosts_that_sleep(self):
        """A request may wait for them."""
        client = mock.Mock()
        listed = [placement_api.Provider(name, name, 1) for name in 'abc']
        client.list_providers.return_value = listed
        client.get_provider_state.side_effect = (
            lambda uuid, known: model.Provider(uuid, 1, {}, {}))
        known = service_context.CloudCaches(
            mock.Mock(db=self.db, options=self.conf.preemption),
            mock.Mock(placement=client))
        known.servers = mock.Mock(by_node=lambda: {'a': []})
        known.budgets = known._policies = mock.Mock()
        energy_store.set_power(self.db, 'b', 'asleep', timeutils.utcnow(),
                               from_states=('on',))
        with mock.patch.object(known.headroom, 'refresh'):
            known.refresh()
        self.assertEqual(
            [True, True, False],
            [known.providers.known(each.uuid) is not None for each in listed])
