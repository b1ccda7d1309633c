# SPDX-License-Identifier: Apache-2.0
"""Tests of the queries of the scheduler about flavors."""

# By name: up to Nova 2025.2 http.server, asked of the package, can be the one
# that eventlet made for itself.
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer
import json
import threading
import types
import unittest
from unittest import mock

from keystoneauth1 import loading as ks_loading
from nova import context as nova_context
from nova import exception
from nova import objects
import nova.conf
from nova.pci import request as pci_request
from nova.scheduler import utils
from oslo_config import fixture as config_fixture
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import request_specs
from nova_preempt.conf import preemption
from nova_preempt.core import fit_and_victims
from nova_preempt.core import model
from nova_preempt.core import refusal_texts
from nova_preempt.scheduler import scheduler_endpoint

objects.register_all()

ALIAS = '{"vendor_id": "10de", "product_id": "20b0", "name": "gpu"}'
GPU = 'CUSTOM_PCI_10DE_20B0'


def forget_aliases():
    """New releases of Nova read them once for all."""
    known = getattr(pci_request, 'get_alias_from_config', None)
    if hasattr(known, 'cache_clear'):
        known.cache_clear()


class TestNoHost(unittest.TestCase):

    def test_reason(self):
        for refusal, unanswered, expected in (
                ('', '', 'no valid host'), ('paused', 'away', 'paused'),
                ('', 'http://secret: 500',
                 refusal_texts.message(refusal_texts.Reason.SERVICE))):
            cycle = types.SimpleNamespace(refusal=refusal,
                                          unanswered=unanswered)
            self.assertEqual(expected, scheduler_endpoint.QueryEndpoint._none(
                cycle, 'no valid host')['reason'])


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
        with mock.patch.object(scheduler_endpoint, '_get_flavor',
                               return_value=flavor(**extra_specs)):
            return scheduler_endpoint.QueryEndpoint(None)._spec(
                nova_context.get_admin_context(), 'f', 'p', 'u', None)

    def groups(self, **extra_specs):
        return request_specs.groups(utils.resources_from_request_spec(
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
        self.assertEqual(0, fit_and_victims.count(wanted, host, {}))
        freed = {(f'g{number}', GPU): 1 for number in range(5)}
        self.assertEqual(2, fit_and_victims.count(wanted, host, freed))
        # Nova's own filter is asked for each device, too.
        asked, = self.spec(
            **{'pci_passthrough:alias': 'gpu:2'}).pci_requests.requests
        self.assertEqual(2, asked.count)

    def test_unknown_devices(self):
        with self.assertRaisesRegex(
                exceptions.NoAnswer, 'The devices that flavor f requests'):
            self.spec(**{'pci_passthrough:alias': 'unknown:2'})

    def test_a_flavor_without_devices(self):
        self.assertEqual(['VCPU', 'MEMORY_MB', 'DISK_GB'],
                         list(self.groups().resources))


class Cyborg(BaseHTTPRequestHandler):
    """Cyborg with one profile, which the right token may see."""

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
    """Cyborg is called with our credentials, as the user's token is not passed
    on."""

    def setUp(self):
        super().setUp()
        server = HTTPServer(('127.0.0.1', 0), Cyborg)
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

    def test_cyborg_is_called_with_our_credentials(self):
        wanted = self.groups(**{'accel:device_profile': 'fast'})
        self.assertEqual([{'FPGA': 1}], [
            each.resources for each in wanted.groups if each.suffix])

    def test_a_profile_that_is_not_there(self):
        self.assert_no_answer('flavor f requests.*slow', 'slow')

    def test_credentials_that_are_refused(self):
        self.log_in('theirs')
        self.assert_no_answer('Cyborg')

    def test_without_credentials(self):
        self.conf.config(group=preemption.GROUP, auth_type=None)
        self.assert_no_answer(r'\[preemption\], which are not set')

    def chances(self, *names):
        flavors = {'fast': flavor(**{'accel:device_profile': 'fast'}),
                   'slow': flavor(**{'accel:device_profile': 'slow'}),
                   'none': flavor()}
        asked = scheduler_endpoint.QueryEndpoint(mock.Mock())
        with mock.patch.object(
                scheduler_endpoint, '_get_flavor',
                side_effect=lambda context, name, project: flavors[name]), (
                mock.patch.object(asked, '_count', return_value={
                    'az': (1, 3)})):
            return [(each['flavor'], each['availability_zone'],
                     each['preemptible'], each['normal'])
                    for each in asked.placement_chances(
                        nova_context.get_admin_context(), names, 'p')]

    def test_the_others_have_an_answer(self):
        with self.assertLogs(
            'nova_preempt.scheduler.scheduler_endpoint') as logs:
            found = self.chances('slow', 'none', 'fast')
        self.assertEqual([('slow', None, None, None), ('none', 'az', 1, 3),
                          ('fast', 'az', 1, 3)], found)
        self.assertIn('flavor slow', logs.output[0])

    def test_no_flavor_has_an_answer(self):
        raised = self.assertRaises(messaging.ExpectedException)
        with self.assertLogs(
            'nova_preempt.scheduler.scheduler_endpoint'), raised:
            self.chances('slow')
        self.assertIsInstance(raised.exception.exc_info[1],
                              exceptions.NoAnswer)


class TestChances(DevicesTestCase):
    """One host has space for one server, for three after evictions."""

    def setUp(self):
        super().setUp()
        self.manager = mock.Mock()
        self.manager.host_manager.host_aggregates_map = {}
        self.preemption = self.manager.preemption
        self.preemption.process.pauses.why.return_value = ''
        self.preemption.process.options = types.SimpleNamespace(
            enabled=True, preempting_operations=['create'])
        self.preemption.process.decisions.get_decisions.return_value = []
        self.preemption.handover.stuck.return_value = set()
        self.preemption.monotonic.return_value = 0
        known = self.preemption.known
        known.providers.list.return_value = [
            placement_api.Provider('uuid', 'host', 1, 'uuid')]
        root = model.Provider('uuid', 1, {}, {})
        known.providers.get_all.side_effect = lambda listed, _age_s: {
            provider.name: root for provider in listed}
        known.trees.providers_for.return_value = {'uuid': (root,)}
        known.headroom = mock.MagicMock()
        known.headroom.__bool__.return_value = False
        # It reads aggregates.
        self.filters = self.patch(scheduler_endpoint.request_filter,
                                  'process_reqspec')
        self.use_flavors(none={})

    def patch(self, *args, **values):
        patch = mock.patch.object(*args, **values)
        self.addCleanup(patch.stop)
        return patch.start()

    def use_flavors(self, **found):
        self.patch(scheduler_endpoint, '_get_flavor',
                   side_effect=lambda context, name, project:
                   flavor(**found[name]))

    def chances(self, *names):
        with mock.patch.object(
                scheduler_endpoint.plan_search, 'PlanSearch', **{
                'return_value.count.return_value': (1, 2)}):
            return [(each['preemptible'], each['normal']) for each
                    in scheduler_endpoint.QueryEndpoint(
                        self.manager).placement_chances(
                            nova_context.get_admin_context(), names, 'p')]

    def test_chances_of_flavors_that_may_preempt(self):
        self.assertEqual([(1, 3)], self.chances('none'))

    def test_counting_stops_at_the_time_limit(self):
        """Each host takes a second."""
        providers, counted = self.preemption.known.providers, []
        providers.list.return_value = [
            placement_api.Provider('uuid', f'host{number}', 1, 'uuid')
            for number in range(50)]
        asked = scheduler_endpoint.QueryEndpoint(self.manager)
        asked._limits = scheduler_endpoint.QueryTimeLimits(lambda: len(
                                                               counted))
        raised = self.assertRaises(messaging.ExpectedException)
        with mock.patch.object(
                scheduler_endpoint.plan_search, 'PlanSearch', **{
                'return_value.count.side_effect':
                lambda *args: counted.append(args)}), raised:
            asked.placement_chances(
                nova_context.get_admin_context(), ['none'], 'p')
        self.assertIn('request fewer', str(raised.exception.exc_info[1]))
        self.assertEqual(20, len(counted))

    def test_age_of_cached_hosts(self):
        """At its limit Placement may leave out hosts with more room."""
        providers = self.preemption.known.providers
        for most, max_age_s in ((2, 3600), (1, 300)):
            self.use_limit(most)
            self.chances('none')
            self.assertEqual(max_age_s, providers.get_all.call_args.args[1])

    def use_limit(self, most):
        self.addCleanup(scheduler_endpoint.CONF.clear_override,
                        'max_placement_results', 'scheduler')
        scheduler_endpoint.CONF.set_override(
            'max_placement_results', most, 'scheduler')

    def test_while_preemption_is_paused(self):
        self.preemption.process.pauses.why.return_value = 'It is paused.'
        self.assertEqual([(1, 1)], self.chances('none'))

    def test_headroom_is_left_free(self):
        """It is subtracted for normal servers, too."""
        headroom = self.preemption.known.headroom
        headroom.__bool__.return_value = True
        headroom.count.return_value = {'uuid': 0}
        self.assertEqual([(0, 3)], self.chances('none'))
        headroom.count.assert_called_once_with(
            {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10}, {'uuid': 1})

    def test_chances_if_boots_do_not_preempt(self):
        self.preemption.process.options.preempting_operations = ['evacuate']
        self.assertEqual([(1, 1)], self.chances('none'))
        self.preemption.process.options.enabled = False
        self.assertEqual([(1, 1)], self.chances('none'))

    def test_no_aggregate_of_the_project(self):
        """[scheduler]placement_aggregate_required_for_tenants: no boot."""
        self.filters.side_effect = exception.RequestFilterFailed(reason='no')
        self.assertEqual([], self.chances('none'))

    def test_a_flavor_without_hosts_has_an_answer(self):
        """Another flavor has no answer."""
        self.use_flavors(none={}, odd={'pci_passthrough:alias': 'unknown:1'})
        self.preemption.known.providers.list.return_value = []
        self.preemption.known.trees.providers_for.return_value = {}
        with self.assertLogs('nova_preempt.scheduler.scheduler_endpoint'):
            self.assertEqual([(None, None)], self.chances('odd', 'none'))


class QueryLimitsTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now_s = 0
        self.limits = scheduler_endpoint.QueryTimeLimits(lambda: self.now_s)

    def ask(self, takes_s, project='p', is_bounded=True):
        with self.limits.query(project, is_bounded) as question:
            self.now_s += takes_s
            return question


class TestQueryLimits(QueryLimitsTestCase):

    def test_a_project_has_a_tenth_of_the_time(self):
        for takes_s in (1, 10, 60, 125):
            self.setUp()
            busy_s = 0
            while self.now_s < 100_000:
                try:
                    self.ask(takes_s)
                    busy_s += takes_s
                except exceptions.TooManyQuestions as exc:
                    self.now_s += exc.args[1]
            self.assertLess(busy_s, 10_000 + 30 + takes_s, takes_s)
            self.assertGreater(busy_s, 9_500, takes_s)

    def test_a_failed_query_counts(self):
        with self.assertRaises(ZeroDivisionError), self.limits.query(
                'p', True):
            self.now_s += 40
            raise ZeroDivisionError
        with self.assertRaisesRegex(exceptions.TooManyQuestions,
                                    'retry after 100 s') as caught:
            self.ask(1)
        self.assertEqual(100, caught.exception.args[1])

    def test_other_projects_have_their_own_allowance(self):
        self.ask(40)
        self.ask(40, 'other')
        self.ask(40, is_bounded=False)
        self.assertRaises(exceptions.TooManyQuestions, self.ask, 1)


class TestEndpointLimits(QueryLimitsTestCase):
    """Limits of the endpoint's queries."""

    def setUp(self):
        super().setUp()
        self.endpoint = scheduler_endpoint.QueryEndpoint(mock.Mock())
        self.endpoint._limits = self.limits
        self.flavors = []
        for name, answer in (('_spec', lambda context, flavor, *_: flavor),
                             ('_count', self.count),
                             ('_explain', self.explain)):
            self.enterContext(mock.patch.object(
                self.endpoint, name, answer))

    def count(self, _context, flavor, *_args):
        self.flavors.append(flavor)
        self.now_s += 9
        return {'az': (1, 1)}

    def explain(self, *_args):
        self.now_s += 21
        return {}

    def chances(self, number, **values):
        return self.endpoint.placement_chances(
            nova_context.get_admin_context(), list(range(number)), 'p',
            **values)

    def explains(self, **values):
        return self.endpoint.explain(
            nova_context.get_admin_context(), 'f', 'p', 'u', **values)

    def assert_refused(self, kind, call, *args):
        with self.assertRaises(messaging.ExpectedException) as caught:
            call(*args)
        self.assertIsInstance(caught.exception.exc_info[1], kind)
        return caught.exception.exc_info[1]

    def test_stops_when_the_caller_has_timed_out(self):
        exc = self.assert_refused(exceptions.NoAnswer, self.chances, 50)
        self.assertIn('request fewer flavors', str(exc))
        self.assertEqual([0, 1, 2], self.flavors)
        self.assertEqual(2, len(self.chances(2, is_bounded=False)))

    def test_queries_share_one_allowance(self):
        self.explains()
        self.chances(1)
        self.chances(1)
        for call, *args in ((self.explains,), (self.chances, 1)):
            exc = self.assert_refused(exceptions.TooManyQuestions, call, *args)
            # It has 30 - 21, + 0.9 - 9, + 0.9 - 9.
            self.assertEqual(72, exc.args[1])
        self.explains(is_bounded=False)
        self.now_s += 52
        self.chances(1)
