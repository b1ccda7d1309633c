# SPDX-License-Identifier: Apache-2.0
"""The agent of examples/kubernetes on Nova's own metadata service."""

from nova_preempt.cloud import nova_api
from tests import kubernetes_api
from tests.functional import test_ends
from tests.unit.examples import test_spot_node_agent


class TestKubernetesNode(test_ends.EndsTestCase):

    def test_notice_and_withdrawal(self):
        self.flags(maximum_notice_s=100, group='preemption')
        node, _other = self.fill(**{'preemptible:notice_s': '100'})
        kubernetes = kubernetes_api.KubernetesAPI()
        self.addCleanup(kubernetes.close)
        kubernetes.add_pod('web', grace_s=5)
        program = test_spot_node_agent.program
        agent = program.Agent(
            program.Kubernetes(kubernetes.url, lambda: kubernetes_api.TOKEN),
            'node1',
            f'{self.guest(node).url}/openstack/latest/meta_data.json')
        self.assertIsNone(agent.step())
        normal, notice = self.boot_and_wait_for_notice(node)
        self.assertEqual(notice['deadline'], agent.step()['deadline'])
        self.assertTrue(kubernetes.node['spec']['unschedulable'])
        self.assertEqual([('web', 'evict', 5)], kubernetes.ended)

        self.api.delete_server(normal)
        self.wait_for(
            lambda: nova_api.NOTICE_KEY not in self.api.get_server(
                node)['metadata'], 'the withdrawal of the notice')
        self.assertIsNone(agent.step())
        self.assertNotIn('unschedulable', kubernetes.node['spec'])
