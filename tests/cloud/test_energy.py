# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Idle hosts are put to sleep, and woken for who needs them."""

import shlex
import sys

from minicloud import nova_files
from minicloud import services

from tests.cloud import base

OPTIONS = {
    'enabled': 'true',
    'driver': 'command',
    'note_interval_s': '2',
    'switch_interval_s': '5',
    'idle_intervals': '2',
    'empty_checks_s': '2',
    'spare_hosts': '0',
    'minimum_hosts': '1',
    'max_sleeps_per_minute': '10',
    'boot_time_s': '10',
    'demand_wait_s': '300',
}


class TestEnergy(base.CloudTest):

    def setUp(self):
        super().setUp()
        extra = nova_files.extra(self.place.layout)
        self.addCleanup(self._go_back, extra, extra.read_text())
        extra.write_text('[energy]\n' + ''.join(
            f'{name} = {value}\n'
            for name, value in (OPTIONS | self._commands()).items()))
        self._restart_ours()

    def _commands(self):
        layout = self.place.layout
        command = shlex.join((
            'env', f'PYTHONPATH={services.TOOLS}', sys.executable, '-m',
            'minicloud', '--dir', str(layout.directory),
            '--venv', str(layout.venv)))
        return {
            'command_on': f'{command} start {{host}}',
            'command_off': f'{command} stop {{host}}',
            'command_force_off': f'{command} kill {{host}}',
            'command_status': f'{command} state {{host}}',
            'command_on_pattern': 'running',
        }

    def _restart_ours(self):
        for name in self.place.services.names():
            if name.startswith('nova-preempt-'):
                self.place.services.stop(name)
                self.place.services.start(name)

    def _go_back(self, extra, text):
        self._clean()
        extra.write_text(text)
        self._restart_ours()
        for host in self.place.layout.computes:
            self.place.services.start(host)
        self.wait_until(self._all_are_up, 'computes that are up')
        for service in self._computes():
            self.admin.compute.enable_service(service)

    def _computes(self):
        return list(self.admin.compute.services(binary='nova-compute'))

    def _all_are_up(self):
        return all(service.state == 'up' for service in self._computes())

    def test_idle_hosts_sleep_until_somebody_needs_them(self):
        hosts = len(self.place.layout.computes)
        self.wait_until(lambda: len(self._asleep()) == hosts - 1,
                        f'{hosts - 1} hosts asleep')
        for host in self._asleep():
            self.assertEqual('gone', self.place.services.state(host))

        # Two fit on the host that is left.
        flavor = self.flavor('normal.half')
        uuids = [self.ours.boot(f'normal{number}', flavor)
                 for number in range(3)]
        self.assertEqual(['ACTIVE'] * 3, [
            self.ours.wait(uuid, base.PATIENCE_S) for uuid in uuids])
        used = {self.admin.compute.get_server(uuid).compute_host
                for uuid in uuids}
        self.assertEqual(2, len(used))
        for host in used:
            self.assertEqual('running', self.place.services.state(host))
        self.assertEqual('on', self._states()[used.pop()])

    def _states(self):
        return {row['Name']: row['State']
                for row in self.place.openstack('energy', 'hosts')}

    def _asleep(self):
        return [host for host, state in self._states().items()
                if state == 'asleep']
