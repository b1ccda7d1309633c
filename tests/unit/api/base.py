# SPDX-License-Identifier: Apache-2.0
"""The API with its own database and a fake message bus."""

import dataclasses
import datetime
import json
import logging
import pathlib
import tempfile
import unittest
from unittest import mock
import uuid

from cryptography import fernet
from oslo_config import cfg
import oslo_messaging as messaging
from oslo_messaging import conffixture
from oslo_utils import timeutils
import webob

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.api import middleware_pipeline
from nova_preempt.backlog import request_intake
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_as_user
from nova_preempt.cloud import nova_contexts
import nova_preempt.conf
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import host_query
from nova_preempt.db import database_clock
from nova_preempt.db import decisions
from nova_preempt.db import reservable_hosts
from tests import tables

HOST = 'host1'
NOW = datetime.datetime(2026, 11, 20, 12)


def make_uuid(name):
    """Return a uuid, equal for equal names."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


class SchedulerEndpoint:
    """Answers as the scheduler would, and remembers what it was asked."""

    target = messaging.Target(namespace='nova_preempt', version='1.0')

    def __init__(self):
        self.calls = []
        self.bounded = []

    def explain(self, context, flavor, project_id, user_id,
                availability_zone=None, host=None, is_bounded=True):
        self.bounded.append(is_bounded)
        self.bound(flavor)
        self.calls.append((context, flavor, project_id, user_id,
                           availability_zone, host))
        if flavor == 'unknown':
            raise exceptions.FlavorNotFound("There is no flavor 'unknown'.")
        if flavor == 'broken':
            raise ZeroDivisionError('secret')
        if flavor == 'huge':
            return {'outcome': 'no_valid_host', 'host': None, 'cost_us': 0,
                    'victims': [], 'considered': [], 'reason': 'No host.'}
        victims = [
            {'server_uuid': make_uuid(name), 'project_id': name[0],
             'flavor': 'spot', 'cost_us': 30} for name in ('p1', 'q1', 'q2')]
        return {'outcome': 'preempts', 'host': HOST, 'cost_us': 90,
                'victims': victims, 'reason': 'host1 lacks 1 VCPU',
                'considered': [{
                    'host': HOST, 'node': HOST, 'cost_us': 90,
                    'victims': [victim['server_uuid']
                                for victim in victims]}]}

    def bound(self, flavor):
        if flavor == 'too-much':
            raise exceptions.TooManyQuestions('Come back later.', 17)

    def placement_chances(self, context, flavors, project_id,
                          availability_zone=None, is_bounded=True):
        self.bounded.append(is_bounded)
        self.bound(flavors[0])
        self.calls.append((context, flavors, project_id, availability_zone))
        if 'unknown' in flavors:
            raise exceptions.FlavorNotFound("There is no flavor 'unknown'.")
        return [{'flavor': flavor, 'availability_zone': zone,
                 'preemptible': 3, 'normal': 7} for flavor in flavors
                for zone in ([availability_zone] if availability_zone else
                             ['az1', 'az2'])]


class EngineEndpoint:
    """Answers like the engine. It has one server of each project."""

    target = messaging.Target(version='1.0')
    servers = {make_uuid(f'{project}-spot'): project for project in 'pq'}
    normal = make_uuid('p-normal')
    ending = make_uuid('p-ending')
    locked = make_uuid('p-locked')

    def __init__(self):
        self.calls = []

    def simulate(self, context, server_uuid, project_id, reason):
        self.calls.append((context, server_uuid, project_id, reason))
        if server_uuid == self.normal:
            raise exceptions.NotPreemptible(
                f'Server {server_uuid} is not preemptible.')
        if server_uuid == self.ending:
            raise exceptions.AlreadyEnding(
                f'Server {server_uuid} is already being evicted.')
        if server_uuid == self.locked:
            raise exceptions.CannotEnd('It is locked.')
        if self.servers.get(server_uuid) not in (
                {project_id} if project_id else set('pq')):
            raise exceptions.ServerNotFound(
                f'There is no server {server_uuid}.')
        return make_uuid('simulated')


class InventoryEndpoint:
    """Answers about hosts as the engine would, from these."""

    target = messaging.Target(namespace=rpc.INVENTORY, version='1.0')

    def __init__(self):
        self.calls = []
        self.hosts = {}
        #: What administrators say of hosts: {name: (reservable, extra)}
        self.settings = dict

    def add(self, name, vacant=True, flops_per_watt=None, **properties):
        self.hosts[name] = {
            'name': name, 'service_host': f'{name}-service', 'state': 'up',
            'status': 'enabled', 'vacant': vacant,
            'running_servers': 0 if vacant else 1,
            'flops_per_watt': flops_per_watt,
            'properties': {'vcpus': 8, 'traits': [], **properties}}

    def ping(self, context):
        self.calls.append((context, 'ping'))

    def list_hosts(self, context):
        self.calls.append((context, 'list_hosts'))
        return self._hosts()

    def _hosts(self):
        hosts = []
        for name, item in sorted(self.hosts.items()):
            reservable, extra = self.settings().get(name, (None, {}))
            hosts.append({
                **item, 'reservable': reservable is not False,
                'properties': {**item['properties'], **{
                    f'extra.{key}': value for key, value in extra.items()}}})
        return hosts

    @messaging.expected_exceptions(exceptions.PreemptError)
    def find_hosts(self, context, host_properties):
        self.calls.append((context, 'find_hosts', host_properties))
        try:
            query = host_query.parse(host_properties)
        except host_query.InvalidQuery as exc:
            raise exceptions.InvalidReservation(str(exc)) from None
        return [{'name': item['name'], 'vacant': item['vacant'],
                 'flops_per_watt': item['flops_per_watt']}
                for item in self._hosts()
                if item['reservable'] and query.matches(item['properties'])]

    def list_properties(self, context):
        self.calls.append((context, 'list_properties'))
        found = {}
        for item in self._hosts():
            for name, value in item['properties'].items():
                values = found.setdefault(name, set())
                values.update(value if isinstance(value, list) else [value])
        return [{'name': name, 'type': 'text', 'values': sorted(values),
                 'hidden': False} for name, values in sorted(found.items())]


class BacklogEndpoint:
    """Answers queries of the backlog like the engine."""

    target = messaging.Target(namespace=rpc.BACKLOG, version='1.0')

    def __init__(self):
        self.calls = []
        self.mode = 'exact'
        self.stopped = ''

    def plan(self, context):
        self.calls.append((context, 'plan'))
        planned = self.mode != 'off'
        return {
            'mode': self.mode, 'stopped': self.stopped, 'waiting': 3,
            'starts': [
                {'request': make_uuid('r1'), 'name': 'batch',
                 'project_id': 'p', 'flavor': 'big', 'count': 3,
                 'hosts': {'host2': 1, 'host1': 2} if planned else {},
                 'reason': ''},
                {'request': make_uuid('r2'), 'name': '', 'project_id': 'q',
                 'flavor': 'spot', 'count': 1, 'hosts': {},
                 'reason': 'It asks for VGPU.' if planned else ''}],
            'hosts': [
                {'name': f'host{number}', 'resources': {
                    'VCPU': {'capacity': 16, 'used': number,
                             'used_after': number + 4 * count * planned},
                    'MEMORY_MB': {'capacity': 0, 'used': 0,
                                  'used_after': 0}}}
                for number, count in ((1, 2), (2, 1), (3, 0))]}


class Trusts:
    """Makes trusts as Keystone would, of tokens "user:project"."""

    def __init__(self):
        #: {id: (token, project, user, roles)}
        self.made = {}
        self.expiries = {}      # of those that are gone, too
        #: Raised by the method of this name.
        self.fails = {}

    def create(self, auth_token, project_id, user_id, roles, expires_at):
        self._fail('create')
        if auth_token.startswith('robot:'):
            raise keystone_trusts.TrustRefused(
                'not with an application credential')
        trust_id = f'trust{len(self.expiries)}'
        self.made[trust_id] = (auth_token, project_id, user_id, roles)
        self.expiries[trust_id] = expires_at
        return trust_id

    def list(self):
        self._fail('list')
        return [{'id': trust_id, 'trustor_user_id': made[2],
                 'expires_at': f'{self.expiries[trust_id].isoformat()}Z'}
                for trust_id, made in self.made.items()]

    def delete(self, trust_id):
        self._fail('delete')
        self.made.pop(trust_id, None)

    def check(self):
        self._fail('check')

    def _fail(self, name):
        if name in self.fails:
            raise self.fails[name]


class Reading:
    """Has flavors, an image and a key pair, as Nova would."""

    image_id = '155d900f-4e14-4e4c-a73d-069cbf4541e6'

    def __init__(self):
        self.tokens = []
        self.fails = None
        self.flavors = {
            'f1': backlog_model.Alternative('f1', 'big', {
                'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 10}),
            'f2': backlog_model.Alternative('f2', 'spot', {'VCPU': 1}, True),
            'gold': backlog_model.Alternative('gold', 'golden', {'VCPU': 2},
                                              True, class_name='gold'),
            'silver': backlog_model.Alternative('silver', 'silver',
                                                {'VCPU': 2}, True,
                                                class_name='silver')}
        self.ladders = {'web': [
            backlog_model.Alternative(f'{name}{cores}', f'{name}{cores}',
                                      {'VCPU': cores},
                                      required=(f'CUSTOM_REPUTATION_{name}',))
            for name in ('HIGH', 'LOW') for cores in (1, 2, 4)]}

    def flavor(self, token, flavor_id, from_volume=False):
        self._find(token, self.flavors, flavor_id)
        return self.flavors[flavor_id]

    def ladder(self, token, name, from_volume=False):
        if self.fails:
            raise self.fails
        return self.ladders.get(name, [])

    def image(self, token, image_id):
        self._find(token, [self.image_id], image_id)

    def key_pair(self, token, name):
        self._find(token, ['key'], name)

    def _find(self, token, known, name):
        self.tokens.append(token)
        if self.fails:
            raise self.fails
        if name not in known:
            raise nova_as_user.NotFound(f'There is no {name}.')


class DatabaseTestCase(unittest.TestCase):

    transport_url = 'fake:/'
    #: More of nova.conf.
    options = ''
    register_opts = staticmethod(nova_preempt.conf.register_opts)

    def setUp(self):
        super().setUp()
        # Many a test is about failures, which are logged.
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        path = self.directory / 'nova.conf'
        path.write_text(
            f'[DEFAULT]\ntransport_url = {self.transport_url}\n'
            '[preemption_database]\n'
            f'connection = {self.database()}\n'
            f'{self.options}')
        self.conf = cfg.ConfigOpts()
        self.addCleanup(self.conf.reset)
        self.register_opts(self.conf)
        self.conf([], default_config_files=[str(path)],
                  default_config_dirs=[])
        # As an operator does who wants reservations.
        for name in ('enabled', 'reservable_default'):
            self.conf.set_override(name, True, 'reservation')
        self.db = db.Database(self.conf)
        self.decisions = db.Decisions(self.db)
        tables.make(self.db)
        self.addCleanup(
            lambda: self.db.engine.dispose())

    def database(self):
        """Return the URL of the database."""
        return f'sqlite:///{self.directory}/test.sqlite'

    def add(self, name, project='n', victims=(), age_s=0, **values):
        """Write a decision; a victim is a (name, project, flavor)."""
        values = {
            'status': decisions.DONE, 'host': HOST,
            'user_id': f'{project}-user',
            'operation': 'create', 'request_id': f'req-{name}',
            'reason': f'of {HOST}', 'cost_us': 60,
            'record': {'operation': 'create', 'flavor': 'normal',
                       'resources': {'VCPU': 2}, 'why': f'{HOST} is full',
                       'considered': [{'host': HOST}]}, **values}
        item = db.Decision(
            make_uuid(name), make_uuid(f'{name}-server'), project_id=project,
            victims=tuple(
                db.Victim(make_uuid(victim), owner, f'{owner}-user', flavor,
                          30, status='gone')
                for victim, owner, flavor in victims), **values)
        when = NOW - datetime.timedelta(seconds=age_s)
        with mock.patch.object(timeutils, 'utcnow', return_value=when), \
                mock.patch.object(database_clock, 'now', return_value=when):
            self.decisions.create_decision(item)
        return item.uuid


class ApiTestCase(DatabaseTestCase):
    """Has the real application; tokens are "user:project"."""

    options = '[preemption_api]\nauth_strategy = noauth\n'
    register_opts = staticmethod(nova_preempt.conf.register_api_opts)
    #: The microversion of requests; None for the oldest.
    microversion = None

    def setUp(self):
        super().setUp()
        # Some of its options are on the global configuration otherwise.
        bus = conffixture.ConfFixture(self.conf)
        bus.setUp()
        self.addCleanup(bus.cleanUp)
        # Neither Keystone nor Nova's API is there.
        self.trusts, self.reading = Trusts(), Reading()
        self.told = []
        self.conf.set_override('enabled', True, 'backlog')
        self.conf.set_override('ladders', True, 'backlog')
        self.keys = self.directory / 'keys'
        self.keys.write_bytes(fernet.Fernet.generate_key())
        self.conf.set_override('secret_key_file', str(self.keys), 'backlog')
        self.conf.set_override('enabled', True, 'classes')
        self.conf.set_override('qos_class', [
            {'name': 'gold', 'importance': '1', 'availability': '0.95',
             'open': 'true'},
            {'name': 'silver', 'importance': '2', 'availability': '0.9'}],
            'classes')
        made = middleware_pipeline.make_services(self.conf)
        self.services = services = dataclasses.replace(
            made, submissions=request_intake.RequestIntake(
                self.conf, made.database, self.trusts, self.reading,
                made.classes, tell=self.tell))
        self.transport = services.scheduler.transport
        self.addCleanup(self.transport.cleanup)
        self.app = middleware_pipeline.make_app(self.conf, services)

    def tell(self, request, old_state):
        """Record a notification of a request."""
        self.told.append((request.uuid, old_state, request.state))

    def request(self, path, method='GET', token='u:p', **values):
        """A webob.Response."""
        request = webob.Request.blank(path, method=method, **values)
        if self.microversion is not None:
            request.headers['OpenStack-API-Version'] = (
                f'preemption {self.microversion}')
        if token is not None:
            request.headers['X-Auth-Token'] = token
        return request.get_response(self.app)

    def get(self, path, token='u:p', code=200, **values):
        """Return the JSON of a GET."""
        return self.checked(self.request(path, token=token, **values), code)

    def post(self, path, body, token='u:p', code=200, method='POST',
             **values):
        """Send a POST."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.checked(self.request(
            path, method, token, body=body,
            content_type=values.pop('content_type', 'application/json'),
            **values), code)

    def patch(self, path, body, token='u:p', code=200):
        return self.post(path, body, token, code, 'PATCH')

    def put(self, path, body, token='u:p', code=200):
        return self.post(path, body, token, code, 'PUT')

    def delete(self, path, token='u:p', code=204):
        return self.checked(self.request(path, 'DELETE', token), code)

    def checked(self, response, code):
        self.assertEqual(code, response.status_int, response.text)
        if code == 204:
            self.assertEqual(b'', response.body)
            self.assertNotIn('Content-Type', response.headers)
            return None
        self.assertEqual('application/json', response.content_type)
        self.assertRegex(response.headers['X-Openstack-Request-Id'], '^req-')
        if code >= 400:
            error = response.json['error']
            self.assertEqual(code, error['code'])
            self.assertTrue(error['title'])
            self.assertTrue(error['message'])
        return response.json


class AnsweringTestCase(ApiTestCase):
    """Has a scheduler and an engine that answer."""

    def setUp(self):
        super().setUp()
        self.scheduler = self.serve('scheduler', SchedulerEndpoint())
        self.inventory = InventoryEndpoint()
        self.inventory.settings = lambda: {
            name: (item.reservable, item.extra)
            for name, item in reservable_hosts.get_hosts(self.db).items()}
        self.backlog = BacklogEndpoint()
        self.engine = self.serve('nova_preempt_engine', EngineEndpoint(),
                                 self.inventory, self.backlog)

    def serve(self, topic, endpoint, *more):
        server = messaging.get_rpc_server(
            self.transport, messaging.Target(topic=topic, server='here'),
            [endpoint, *more], executor='threading',
            serializer=nova_contexts.serializer())
        server.start()
        # Not wait(): it takes a second, and nothing is left to be done.
        self.addCleanup(server.stop)
        return endpoint
