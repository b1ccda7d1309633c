# SPDX-License-Identifier: Apache-2.0
"""Tests of preemptions, their explanations, and pauses."""

from tempest.lib import decorators
from tempest.lib import exceptions
from tempest.lib.common.utils import data_utils

from nova_preempt_tempest_plugin import base


class PreemptionsTest(base.PreemptionTest):

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.normal = cls.create_flavor()
        cls.spot = cls.create_flavor(preemptible=True)

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('f3e40a44-ec8e-4fae-9942-6a122ce3f031')
    def test_a_new_project_has_no_preemptions(self):
        self.assertEqual([], self.client.list_preemptions()['preemptions'])
        numbers = self.client.show_statistics()['statistics']
        self.assertEqual(0, numbers['total']['preemptions'])

    @decorators.idempotent_id('341f5731-2592-4e0a-b1d1-12983e0f6b9d')
    def test_one_that_is_not_there(self):
        self.assertRaises(exceptions.NotFound, self.client.show_preemption,
                          data_utils.rand_uuid())

    @decorators.idempotent_id('30e6e8e5-037c-4426-8faf-c871c1e69318')
    def test_refused_ones_are_for_administrators(self):
        self.assertRaises(exceptions.Forbidden, self.client.list_preemptions,
                          status='refused')
        self.admin_client.list_preemptions(status='refused', limit=1)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('15e59d6f-c283-487e-8e80-0bd7a3a4ebbb')
    def test_an_unknown_parameter(self):
        self.assertRaises(exceptions.BadRequest, self.client.list_preemptions,
                          limt=1)

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('bda182b9-74d1-442f-9629-a16a5f4817c5')
    def test_explain_tells_a_member_its_own_side(self):
        answer = self.client.explain(flavor=self.normal)['explain']
        self.assertIn(answer['outcome'], ('free', 'preempts',
                                          'no_valid_host'))
        self.assertNotIn('host', answer)

    @decorators.idempotent_id('d2259364-899e-486f-86c1-098fb596ef33')
    def test_explain_tells_an_administrator_the_host(self):
        answer = self.admin_client.explain(flavor=self.normal)['explain']
        self.assertIn('host', answer)

    @decorators.idempotent_id('0fba484c-ae59-45ec-ba5f-c1b81da1c394')
    def test_a_member_may_not_ask_for_a_host(self):
        self.assertRaises(exceptions.Forbidden, self.client.explain,
                          flavor=self.normal, host='any')

    @decorators.idempotent_id('910dbf4e-3db8-4d5d-9262-753a4cbfcb58')
    def test_chances_of_preemptible_and_normal_servers(self):
        chances = self.client.list_placement_chances(
            self.normal)['placement_chances']
        self.assertTrue(chances)
        for chance in chances:
            self.assertLessEqual(chance['preemptible'], chance['normal'])

    @decorators.idempotent_id('956ecd16-3b59-45b2-8e9c-4b8c076af087')
    def test_simulate_ends_a_server_of_ones_own(self):
        server = self.create_server(self.spot)
        found = self.client.simulate(
            server_id=server, reason='a test')['preemption']
        self.wait_for('the server has not ended',
                      lambda: not self.is_there(server))
        record = self.wait_for('the preemption is not done', lambda: next(
            (record for record in self.client.list_preemptions(
                server_id=server, status='done')['preemptions']), None))
        self.assertEqual(found['id'], record['id'])
        self.assertEqual('simulate', record['operation'])
        self.assertIsNone(record['server'])

    @decorators.attr(type='negative')
    @decorators.idempotent_id('9a3dc113-fe78-4da0-86b3-bf5733340c0b')
    def test_simulate_does_not_end_a_normal_server(self):
        server = self.create_server(self.normal)
        self.assertRaises(exceptions.Conflict, self.client.simulate,
                          server_id=server)
        self.assertTrue(self.is_there(server))

    @decorators.attr(type='negative')
    @decorators.idempotent_id('8d09bc9e-a86e-48c5-a7a1-3df71b7ef7a5')
    def test_pauses_are_not_for_members(self):
        self.assertRaises(exceptions.Forbidden, self.client.pause,
                          'preemption', 'a test')
        self.assertRaises(exceptions.Forbidden, self.client.list_pauses)
