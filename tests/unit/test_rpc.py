# SPDX-License-Identifier: Apache-2.0
"""Calls over a bus that serializes messages, as RabbitMQ does."""

from nova import context as nova_context
from nova import rpc as nova_rpc
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.reservation import reservation_engine_tasks
from tests.unit.api import base
from tests.unit.api.base import make_uuid


class TestClients(base.AnsweringTestCase):

    transport_url = 'kombu+memory:////'

    def setUp(self):
        super().setUp()
        self.context = nova_context.RequestContext(
            'u', 'p', is_admin=False, roles=['member'], overwrite=False)
        self.scheduler_client = rpc.SchedulerPreviewClient(self.transport, 5)
        self.engine_client = rpc.EngineClient(self.transport, 5)

    def test_explain(self):
        answer = self.scheduler_client.explain(
            self.context, 'small', 'p', 'u', host='host1')
        self.assertEqual('preempts', answer['outcome'])
        context, *arguments = self.scheduler.calls[0]
        self.assertEqual(['small', 'p', 'u', None, 'host1'], arguments)
        self.assertEqual(('u', 'p', ['member'], self.context.request_id), (
            context.user_id, context.project_id, context.roles,
            context.request_id))

    def test_placement_chances(self):
        answer = self.scheduler_client.placement_chances(
            self.context, ['small'], 'p', 'az1')
        self.assertEqual([{
            'flavor': 'small', 'availability_zone': 'az1', 'preemptible': 3,
            'normal': 7}], answer)

    def test_simulate(self):
        self.assertEqual(make_uuid('simulated'), self.engine_client.simulate(
            self.context, make_uuid('p-spot'), 'p', 'a test'))

    def test_refusals(self):
        for error, call, arguments in (
                (exceptions.FlavorNotFound, self.scheduler_client.explain,
                 ('unknown', 'p', 'u')),
                (exceptions.ServerNotFound, self.engine_client.simulate,
                 (make_uuid('x'), 'p', '')),
                (exceptions.NotPreemptible, self.engine_client.simulate,
                 (base.EngineEndpoint.normal, 'p', '')),
                (exceptions.AlreadyEnding, self.engine_client.simulate,
                 (base.EngineEndpoint.ending, 'p', '')),
                (exceptions.CannotEnd, self.engine_client.simulate,
                 (base.EngineEndpoint.locked, 'p', ''))):
            with self.assertRaises(error):
                call(self.context, *arguments)

    def test_an_engine_reaches_itself(self):
        self.assertEqual('', reservation_engine_tasks.why_unreachable(
            self.engine_client, 'here'))

    def test_an_engine_that_does_not_reach_itself(self):
        self.assertIn(
            'does not reach itself over the message bus',
            reservation_engine_tasks.why_unreachable(
                rpc.EngineClient(self.transport, 1), 'nobody'))

    def test_failures(self):
        with self.assertRaisesRegex(exceptions.NoAnswer, 'scheduler'):
            self.scheduler_client.explain(self.context, 'broken', 'p', 'u')
        client = rpc.EngineClient(self.transport, 1)
        client._client = client._client.prepare(topic='nobody')
        with self.assertRaisesRegex(exceptions.NoAnswer, 'engine'):
            client.simulate(self.context, make_uuid('p-spot'), 'p', '')


class HostsEndpoint:
    """The engine's other endpoint."""

    target = messaging.Target(namespace=rpc.INVENTORY, version='1.0')

    def find_hosts(self, context, host_properties):
        return [{'name': 'host1', 'flops_per_watt': None,
                 'vacant': host_properties == ['=', '$vcpus', 8]}]

    def list_properties(self, context):
        return [{'name': 'vcpus', 'type': 'number', 'values': [8],
                 'hidden': False}]

    def list_hosts(self, context):
        return [{'name': 'host1', 'state': 'up'}]


class TestInventory(base.AnsweringTestCase):

    transport_url = 'kombu+memory:////'

    def test_three_questions(self):
        server = messaging.get_rpc_server(
            self.transport, messaging.Target(topic='hosts', server='h'),
            [HostsEndpoint()], executor='threading',
            serializer=nova_rpc.RequestContextSerializer(None))
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        client = rpc.EngineClient(self.transport, 5)
        client._client = client._client.prepare(topic='hosts')
        context = nova_context.get_admin_context()
        self.assertEqual(
            [{'name': 'host1', 'flops_per_watt': None, 'vacant': True}],
            client.find_hosts(context, ['=', '$vcpus', 8]))
        self.assertEqual('vcpus', client.list_properties(context)[0]['name'])
        self.assertEqual('up', client.list_hosts(context)[0]['state'])
