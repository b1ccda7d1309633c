# SPDX-License-Identifier: Apache-2.0
"""Tests of commands about GPUs, as a user and an administrator."""

from tests.functional import test_client
from tests.functional import test_nested


class TestGpuCommands(test_client.CommandsTestCase,
                      test_nested.TreeTestCase):

    def test_before_and_after_a_preemption(self):
        self.add_tree('host', test_nested.gpus(4))
        spots = [self.boot_spot(
            f'spot-{size}', 'host', uptime_s,
            self.gpu_flavor(size, preemptible=True))
            for size, uptime_s in ((1, 60), (2, 1800))]
        self.assertEqual(
            [(1, 4), (1, 4), (0, 1), (0, 0)],
            [(row['Preemptible'], row['Normal'])
             for row in self.ask_client('chance', *(
                 self.gpu_flavor(*each) for each in (
                     (1, True), (1,), (3,), (5,))))])
        two = self.gpu_flavor(2)
        self.assertEqual([spots[0]], [
            victim['server_id'] for victim in
            self.ask_client('explain', two)['victims']])
        freed = self.gpus_of(spots[0])
        server = self.boot_normal(flavor=two)['id']
        listed, = self.ask_client('list')
        self.assertEqual([spots[0]], listed['Victims'])
        record = self.ask_client('show', listed['ID'])['record']
        self.assertEqual({name: {'CUSTOM_GPU': 1} for name in freed},
                         record['devices'])
        self.assertLess(freed, self.gpus_of(server))
        self.assertEqual({'CUSTOM_GPU': 1}, record['missing'])
        # Their owner sees what they asked for, and no names of hosts.
        shown = self.ask(f'preemptions/{listed["ID"]}', admin=False)
        self.assertEqual(
            {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10, 'CUSTOM_GPU': 2},
            shown['preemption']['record']['resources'])
        self.assertNotIn('devices', shown['preemption']['record'])
        self.wait_consistent()
