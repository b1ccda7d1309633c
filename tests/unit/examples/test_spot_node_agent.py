# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/kubernetes against a stand-in of the Kubernetes API."""

import http.server
import importlib.util
import json
import ssl
import threading
import unittest
from unittest import mock

from tests import kubernetes_api

NOW_S = 1795000000


def load():
    """Return the program as a module that is not run."""
    spec = importlib.util.spec_from_file_location(
        'spot_node_agent', kubernetes_api.EXAMPLES / 'spot_node_agent.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = load()


class AgentTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.api = kubernetes_api.KubernetesAPI()
        self.addCleanup(self.api.close)
        self.meta = {}
        case = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(
                    {'uuid': 'server', 'meta': case.meta}).encode())

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,),
                         daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.metadata_url = f'http://127.0.0.1:{server.server_port}'
        self.now_s = NOW_S
        self.agent = self.make()

    def make(self, **options):
        kubernetes = program.Kubernetes(
            self.api.url, lambda: kubernetes_api.TOKEN)
        return program.Agent(kubernetes, 'node1', self.metadata_url,
                             clock=lambda: self.now_s, **options)

    def give_notice(self, seconds=60, action='delete'):
        deadline = program.datetime.datetime.fromtimestamp(
            NOW_S + seconds, program.datetime.timezone.utc)
        self.meta['preemption'] = json.dumps({
            'action': action, 'reason': 'create', 'preemption_id': 'p1',
            'deadline': f'{deadline:%Y-%m-%dT%H:%M:%SZ}'})

    @property
    def labels(self):
        return self.api.node['metadata'].get('labels', {})

    @property
    def spec(self):
        return self.api.node['spec']


class TestAgent(AgentTestCase):

    def test_labels_its_node(self):
        self.assertIsNone(self.agent.step())
        self.assertEqual({program.LABEL: 'true'}, self.labels)
        self.assertEqual({}, self.spec)
        version = self.api.node['metadata']['resourceVersion']
        self.agent.step()
        self.assertEqual(version,
                         self.api.node['metadata']['resourceVersion'])

    def test_closes_and_drains_within_the_notice(self):
        self.api.add_pod('web', grace_s=30)
        self.api.add_pod('slow', grace_s=600)
        self.give_notice(60)
        self.agent.step()
        self.assertTrue(self.spec['unschedulable'])
        self.assertEqual(
            [{'key': program.ENDING, 'value': 'delete',
              'effect': 'NoSchedule'}], self.spec['taints'])
        self.assertEqual('delete', self.labels[program.ENDING])
        # 5 s before the deadline both are to be gone.
        self.assertEqual([('web', 'evict', 30), ('slow', 'evict', 55)],
                         self.api.ended)

    def test_a_second_step_repeats_nothing(self):
        self.api.add_pod('web')
        self.give_notice()
        self.agent.step()
        before = json.dumps(self.api.node)
        self.make().step()
        self.assertEqual(before, json.dumps(self.api.node))
        self.assertEqual(1, len(self.api.ended))

    def test_what_drain_leaves_alone(self):
        self.api.add_pod('of-daemon-set', owner='DaemonSet')
        self.api.add_pod('static', annotations={
            'kubernetes.io/config.mirror': 'hash'})
        self.api.add_pod('done', status={'phase': 'Succeeded'})
        self.give_notice()
        self.agent.step()
        self.assertEqual([], self.api.ended)

    def test_pods_that_start_during_the_notice_are_drained_too(self):
        self.give_notice()
        self.agent.step()
        self.api.add_pod('late', grace_s=50)
        self.now_s += 40
        self.agent.step()
        self.assertEqual([('late', 'evict', 15)], self.api.ended)

    def test_a_disruption_budget_counts_until_it_is_late(self):
        self.api.add_pod('database', grace_s=20)
        self.api.protected = {'database'}
        self.give_notice(60)
        with self.assertLogs(program.LOG, 'WARNING') as logs:
            self.agent.step()
        self.assertIn('disruption budget', logs.output[-1])
        self.assertEqual([], self.api.ended)
        self.now_s += 25          # 30 s are left: 20 of grace, 10 of FORCE_S
        self.agent.step()
        self.assertEqual([('database', 'delete', 20)], self.api.ended)

    def test_a_pod_that_cannot_be_evicted_delays_no_other(self):
        """It has two budgets, or a slow admission webhook."""
        real = self.agent._kubernetes.evict
        for error in (program.KubernetesError(500, 'two budgets'),
                      TimeoutError('no answer')):
            self.api.pods.clear()
            self.api.ended.clear()
            self.api.add_pod('database', grace_s=20)
            self.api.add_pod('web', grace_s=20)

            def evict(pod, grace_s, error=error):
                if pod['metadata']['name'] == 'database':
                    raise error
                real(pod, grace_s)

            self.now_s = NOW_S
            self.give_notice(60)
            with mock.patch.object(self.agent._kubernetes, 'evict', evict), (
                    self.assertLogs(program.LOG, 'WARNING')):
                self.agent.step()
                self.assertEqual([('web', 'evict', 20)], self.api.ended)
                self.now_s += 25
                self.agent.step()
            self.assertEqual(('database', 'delete', 20), self.api.ended[-1])

    def test_the_time_that_passes_while_pods_are_evicted_counts(self):
        self.api.add_pod('first', grace_s=50)
        self.api.add_pod('second', grace_s=50)
        self.give_notice(60)
        real = self.agent._kubernetes.evict

        def evict(pod, grace_s):
            self.now_s += 10
            real(pod, grace_s)

        with mock.patch.object(self.agent._kubernetes, 'evict', evict):
            self.agent.step()
        self.assertEqual([('first', 'evict', 50), ('second', 'evict', 45)],
                         self.api.ended)

    def test_after_the_deadline_pods_get_one_second(self):
        self.api.add_pod('web')
        self.give_notice(-100)
        self.agent.step()
        self.assertEqual([('web', 'evict', 1)], self.api.ended)

    def test_a_withdrawn_notice_opens_the_node_again(self):
        self.api.node['spec']['taints'] = [
            {'key': 'gpu', 'value': 'yes', 'effect': 'NoSchedule'}]
        self.give_notice()
        self.agent.step()
        self.assertEqual(2, len(self.spec['taints']))
        self.meta.clear()
        self.make().step()
        self.assertEqual({'taints': [
            {'key': 'gpu', 'value': 'yes', 'effect': 'NoSchedule'}]},
            self.spec)
        self.assertEqual({program.LABEL: 'true'}, self.labels)
        self.assertEqual({}, self.api.node['metadata']['annotations'])

    def test_a_recommendation_to_leave(self):
        """New pods prefer other nodes, and nothing else happens."""
        self.api.add_pod('web')
        gpu = {'key': 'gpu', 'value': 'yes', 'effect': 'NoSchedule'}
        self.api.node['spec']['taints'] = [gpu]
        until = program.datetime.datetime.fromtimestamp(
            NOW_S + 60, program.datetime.timezone.utc)
        self.meta['preemption_recommendation'] = json.dumps({
            'reason': 'headroom', 'until': f'{until:%Y-%m-%dT%H:%M:%SZ}'})
        self.assertIsNone(self.agent.step())
        advised = {'taints': [gpu, {
            'key': program.LEAVING, 'value': 'headroom',
            'effect': 'PreferNoSchedule'}]}
        self.assertEqual(advised, self.spec)
        self.assertEqual([], self.api.ended)
        with self.subTest('a second step changes nothing'):
            before = json.dumps(self.api.node)
            self.agent.step()
            self.assertEqual(before, json.dumps(self.api.node))
        with self.subTest('a notice has precedence'):
            self.give_notice()
            self.agent.step()
            self.assertEqual([gpu['key'], program.ENDING], [
                taint['key'] for taint in self.spec['taints']])
            del self.meta['preemption']
            self.agent.step()
            self.assertEqual(advised, self.spec)
        with self.subTest('it has ended'):
            self.now_s += 61
            self.agent.step()
            self.assertEqual({'taints': [gpu]}, self.spec)

    def test_a_node_that_somebody_else_cordoned_stays_cordoned(self):
        self.api.node['spec']['unschedulable'] = True
        self.give_notice()
        self.agent.step()
        self.meta.clear()
        self.agent.step()
        self.assertTrue(self.spec['unschedulable'])
        self.assertNotIn(program.ENDING, self.labels)

    def test_a_later_notice_replaces_the_first(self):
        self.give_notice(60)
        self.agent.step()
        self.give_notice(90, 'shelve')
        self.agent.step()
        self.assertEqual('shelve', self.labels[program.ENDING])
        self.assertEqual(1, len(self.spec['taints']))
        self.meta.clear()
        self.agent.step()
        self.assertNotIn('unschedulable', self.spec)

    def test_a_change_by_others_meanwhile_is_not_lost(self):
        self.give_notice()
        self.api.before_patch = self.api.touch
        with self.assertRaises(program.KubernetesError) as caught:
            self.agent.step()
        self.assertEqual(409, caught.exception.status)
        self.api.before_patch = lambda: None
        self.agent.step()
        self.assertTrue(self.spec['unschedulable'])

    def test_migrations(self):
        self.api.add_pod('web')
        self.give_notice(action='migrate')
        self.make(drains_migrated=False).step()
        self.assertTrue(self.spec['unschedulable'])
        self.assertEqual([], self.api.ended)
        self.agent.step()
        self.assertEqual(1, len(self.api.ended))

    def test_a_replaced_pod_of_the_same_name_is_spared(self):
        self.api.add_pod('web')
        pods = self.agent._kubernetes.get_pods('node1')
        self.api.pods['web']['metadata']['uid'] = 'another'
        with self.assertRaises(program.KubernetesError):
            self.agent._kubernetes.evict(pods[0], 30)
        self.assertEqual([], self.api.ended)

    def test_a_wrong_notice_changes_nothing(self):
        self.meta['preemption'] = '{"action": "delete", "deadline": "soon"}'
        before = json.dumps(self.api.node)
        self.assertRaises(ValueError, self.agent.step)
        self.assertEqual(before, json.dumps(self.api.node))


class TestRun(AgentTestCase):

    def run_steps(self, outcomes):
        """Run the loop over these results of step(); return the waits."""
        class Done(Exception):
            pass

        waits = []

        def sleep(seconds):
            waits.append(seconds)
            if len(waits) == len(outcomes):
                raise Done

        agent = mock.Mock(step=mock.Mock(side_effect=outcomes))
        self.assertRaises(Done, program.run, agent, 5, sleep)
        return waits

    def test_a_failure_is_logged_once_and_retried(self):
        away = OSError('the metadata service is away')
        with self.assertLogs(program.LOG, 'WARNING') as logs:
            self.assertEqual([5, 5, 5, 5], self.run_steps(
                [away, away, None, away]))
        self.assertEqual(2, len(logs.output))

    def test_a_conflict_is_retried_soon(self):
        with self.assertNoLogs(program.LOG, 'WARNING'):
            self.assertEqual([1, 5], self.run_steps(
                [program.KubernetesError(409, 'modified'), None]))


class TestEnvironment(unittest.TestCase):

    VALUES = {'NODE_NAME': 'node1', 'KUBERNETES_SERVICE_HOST': 'fd00::1'}

    def make(self, **values):
        context = ssl.create_default_context()
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        with mock.patch.object(program.ssl, 'create_default_context',
                               return_value=context):
            return program.make_agent(self.VALUES | values)

    def test_certificates_without_key_identifiers(self):
        context = self.make()._kubernetes._context
        self.assertFalse(context.verify_flags & ssl.VERIFY_X509_STRICT)
        self.assertEqual(ssl.CERT_REQUIRED, context.verify_mode)
        self.assertTrue(context.check_hostname)

    def test_of_a_pod(self):
        agent = self.make(RESERVE_S='7', ON_MIGRATE='cordon')
        self.assertEqual('https://[fd00::1]:443', agent._kubernetes._url)
        self.assertEqual(7, agent._reserve_s)
        self.assertFalse(agent._drains_migrated)

    def test_wrong_values(self):
        for name, value, expected in (
                ('RESERVE_S', '-1', 'RESERVE_S=-1: must be a whole number'),
                ('FORCE_S', 'x', 'FORCE_S=x: must be a whole number'),
                ('ON_MIGRATE', 'no', 'must be drain or cordon'),
                ('NODE_NAME', '', 'NODE_NAME must be set')):
            with self.subTest(name), self.assertRaisesRegex(
                    ValueError, expected):
                self.make(**{name: value})


class TestManifests(unittest.TestCase):

    def test_the_daemon_set_sets_what_the_program_reads(self):
        found, = (each for each
                  in kubernetes_api.manifests('spot-node-agent.yaml')
                  if each['kind'] == 'DaemonSet')
        container, = found['spec']['template']['spec']['containers']
        environ = {item['name']: item.get('value', 'node1')
                   for item in container['env']}
        with mock.patch.object(program.ssl, 'create_default_context'):
            program.make_agent(environ | {'KUBERNETES_SERVICE_HOST': 'host'})
        self.assertEqual('/agent/spot_node_agent.py',
                         container['command'][-1])

    def test_the_config_map_has_the_program(self):
        found, = kubernetes_api.manifests('kustomization.yaml')
        for name in (*found['resources'],
                     *found['configMapGenerator'][0]['files']):
            self.assertTrue((kubernetes_api.EXAMPLES / name).is_file(), name)

    def test_references_of_the_cluster_api_manifests(self):
        found = kubernetes_api.manifests('cluster-api-spot-nodes.yaml')
        known = {(each['apiVersion'], each['kind'], each['metadata']['name'])
                 for each in found}
        deployment, = (each for each in found
                       if each['kind'] == 'MachineDeployment')
        spec = deployment['spec']['template']['spec']
        for item in (spec['bootstrap']['configRef'],
                     spec['infrastructureRef']):
            self.assertIn((item['apiVersion'], item['kind'], item['name']),
                          known)
