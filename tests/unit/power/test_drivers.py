# SPDX-License-Identifier: Apache-2.0
"""Drivers that run commands, send packets, and ask Ironic."""

import os
import select
import socket

import fixtures
from oslo_utils import uuidutils

from nova_preempt import exceptions
from nova_preempt.power import driver
from nova_preempt.power import power_errors
from nova_preempt.power.drivers import command
from nova_preempt.power.drivers import ironic
from nova_preempt.power.drivers import redfish_power
from tests.unit.power import base


class WaitingTestCase(base.PowerTestCase):

    def setUp(self):
        super().setUp()
        self.waiting = base.Waiting()
        self.waiter = driver.ConditionPoller(self.waiting.clock,
                                             self.waiting.sleep)

    def fails(self, call, *texts, host='a'):
        exc = self.assertRaises(power_errors.PowerError, call, host)
        self.assertEqual(host, exc.host)
        for text in texts:
            self.assertIn(text, str(exc))


class TestWaiter(WaitingTestCase):

    def shut_down(self, ask, state):
        self.waiter.switch('a', lambda: not state, ask, 300, 'shut down')

    def test_a_host_that_shuts_down(self):
        state = {'on'}
        self.waiting.at = {1100: state.clear}
        self.shut_down(lambda: None, state)
        self.assertAlmostEqual(1100, self.waiting.now_s, delta=2)

    def test_a_host_that_does_not_shut_down(self):
        exc = self.assertRaises(power_errors.PowerError, self.shut_down,
                                lambda: None, {'on'})
        self.assertEqual('host a: it was not shut down within 300 s', str(exc))
        self.assertAlmostEqual(1300, self.waiting.now_s, delta=2)

    def test_a_controller_that_is_slow_before_the_shutdown(self):
        """The host may have servers by now: it is looked at again."""
        def is_off():
            self.waiting.sleep(11)
            return False

        exc = self.assertRaises(
            power_errors.PowerError, self.waiter.switch, 'a', is_off,
            self.fail, 300, 'shut down')
        self.assertEqual('host a: its state took longer than 10 s to read',
                         str(exc))

    def test_a_host_that_is_off(self):
        self.shut_down(self.fail, set())
        self.assertEqual(1000, self.waiting.now_s)

    def test_a_controller_that_is_away_for_a_while(self):
        def is_so():
            if self.waiting.now_s < 1050:
                raise power_errors.PowerError('a', 'busy')
            return True

        self.waiter.wait('a', is_so, 60, 'on')
        self.waiting.now_s = 1000
        exc = self.assertRaises(power_errors.PowerError, self.waiter.wait, 'a',
                                is_so, 10, 'on')
        self.assertEqual('host a: it was not on within 10 s: busy', str(exc))


class CommandTestCase(WaitingTestCase):
    """Real processes; a file says whether the host is on."""

    def setUp(self):
        super().setUp()
        self.state = self.directory / 'a.on'
        self.set(command_on=f'touch {self.directory}/{{host}}.on',
                 command_off=f'rm {self.directory}/{{host}}.on',
                 command_status=f'test -e {self.directory}/{{short}}.on')

    @property
    def driver(self):
        return command.Command(self.conf, self.waiter)


class TestCommand(CommandTestCase):

    def test_on_and_off(self):
        for _time in range(2):
            self.driver.power_on('a')
            self.assertTrue(self.driver.is_on('a'))
            self.assertTrue(self.state.exists())
        for _time in range(2):
            base.power_off(self.driver, 'a')
            self.assertFalse(self.driver.is_on('a'))
        self.assertFalse(self.state.exists())

    def test_no_shell(self):
        self.set_hosts(a={'command': {
            'on': ['touch', str(self.state), f'{self.directory}/$HOME; x']}})
        self.driver.power_on('a')
        self.assertTrue((self.directory / '$HOME; x').exists())

    def test_hard_off(self):
        self.state.touch()
        self.set(command_off='true')
        self.fails(self.driver.shut_down, 'it was not shut down within 300 s')
        self.fails(self.driver.switch_off, 'sets the command "force_off"')
        self.set(command_force_off=f'rm {self.state}')
        base.power_off(self.driver, 'a')
        self.assertFalse(self.state.exists())

    def test_pattern(self):
        self.set(command_on_pattern='is on$',
                 command_status='echo Chassis Power is off')
        self.assertFalse(self.driver.is_on('a'))
        self.set(command_status='echo Chassis Power is on')
        self.assertTrue(self.driver.is_on('a'))
        self.set(command_status='false')
        self.fails(self.driver.is_on, 'false exited with status 1')

    def test_failures(self):
        self.set(command_on='false')
        self.fails(self.driver.power_on, 'false exited with status 1')
        self.set(command_on='ls /nothing/at/all')
        self.fails(self.driver.power_on, 'ls exited with status 2',
                   '/nothing/at/all')
        self.set(command_on='/nothing/at/all')
        self.fails(self.driver.power_on, 'No such file')
        # One whose status takes the boot is not waited for.
        self.set(command_on='true')
        self.driver.power_on('a')
        self.assertEqual(1000, self.waiting.now_s)
        self.set(command_status='sh -c "exit 3"')
        self.fails(self.driver.is_on, 'sh exited with status 3')
        self.set(command_status='')
        self.fails(self.driver.is_on, 'sets the command "status"')
        self.set(command_status='test {host}')
        self.fails(self.driver.is_on, 'not allowed in an', host='-e')

    def test_a_hanging_command_is_killed_with_its_children(self):
        path = self.directory / 'fifo'
        os.mkfifo(path)
        end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, end)
        self.useFixture(fixtures.MockPatchObject(command, 'TIMEOUT_S', 1))
        self.set(command_status='sh -c '
                 f'"sleep 600 > {path} & sleep 600"')
        self.fails(self.driver.is_on, 'sh was killed after 1 s')
        # It ends when nobody is left to write.
        select.select([end], [], [], 60)
        self.assertEqual(b'', os.read(end, 1))


class TestSuspended(CommandTestCase):
    """Hosts that are suspended, and woken by the network."""

    def test_the_connection_breaks_as_the_host_goes(self):
        self.state.touch()
        self.set(command_off=f'sh -c "rm {self.state}; exit 255"')
        self.driver.shut_down('a')
        self.assertFalse(self.state.exists())
        self.assertEqual(1000, self.waiting.now_s)

    def test_a_command_that_fails_and_does_nothing(self):
        self.state.touch()
        self.set(command_off='ls /nothing/at/all')
        self.fails(self.driver.shut_down, 'ls exited with status 2')
        self.set(command_off='')
        self.fails(self.driver.shut_down, 'sets the command "off"')

    def test_magic_packet(self):
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(('127.0.0.1', 0))
        listener.settimeout(30)
        self.useFixture(fixtures.MockPatchObject(
            command, 'PORT', listener.getsockname()[1]))
        self.set_hosts(a={'command': {'mac': '52:54:00:aB:34:56',
                                      'broadcast': '127.0.0.1'}})
        for _time in range(2):
            self.driver.power_on('a')
            self.assertEqual(
                b'\xff' * 6 + b'\x52\x54\x00\xab\x34\x56' * 16,
                listener.recv(1000))
        # One that is awake is left alone.
        self.state.touch()
        self.driver.power_on('a')
        listener.setblocking(False)
        self.assertRaises(BlockingIOError, listener.recv, 1000)


class Node(base.Site):
    """Ironic with one node that follows a given script."""

    def __init__(self, name):
        super().__init__()
        self.uuid = uuidutils.generate_uuid()
        self.states = {'power_state': 'power off', 'last_error': None,
                       'target_power_state': None}
        self.targets = []
        self.refusals = []
        self.answers = {
            ('GET', f'/v1/nodes/{name}'): {'uuid': self.uuid},
            ('GET', f'/v1/nodes/{self.uuid}/states'): lambda _: self.states,
            ('PUT', f'/v1/nodes/{self.uuid}/states/power'): self.put}
        self.ignores = ()

    def put(self, request):
        if self.refusals:
            return self.refusals.pop(0)
        self.targets.append((request.json['target'],
                             request.json.get('timeout')))
        if request.json['target'] not in self.ignores:
            self.states['power_state'] = request.json['target'].replace(
                'soft ', '')
        return 202, b''


class TestIronic(WaitingTestCase):

    def setUp(self):
        super().setUp()
        self.configure('[preemption]\nauth_type = admin_token\n'
                       'endpoint = http://127.0.0.1:1\ntoken = secret\n')
        self.node = Node('a')
        self.set(ironic_url=self.serve(self.node))
        self.driver = ironic.Ironic(self.conf, self.waiter)

    def test_on_and_off(self):
        for _time in range(2):
            self.driver.power_on('a')
            self.assertTrue(self.driver.is_on('a'))
        for _time in range(2):
            base.power_off(self.driver, 'a')
            self.assertFalse(self.driver.is_on('a'))
        self.assertEqual([('power on', None), ('soft power off', 300)],
                         self.node.targets)
        for request in self.node.requests:
            self.assertEqual('secret', request.headers['X-Auth-Token'])
            self.assertEqual('baremetal 1.27',
                             request.headers['OpenStack-API-Version'])

    def test_a_node_that_does_not_shut_down(self):
        self.driver.power_on('a')
        self.node.ignores = ('soft power off',)
        base.power_off(self.driver, 'a')
        self.assertEqual([('soft power off', 300), ('power off', 60)],
                         self.node.targets[1:])

    def test_ironic_gives_up(self):
        self.node.ignores = ('power on', 'soft power off')
        self.node.states['last_error'] = 'no BMC'
        self.fails(self.driver.power_on, 'no BMC')
        self.assertEqual(1000, self.waiting.now_s)
        # The next step is tried at once.
        self.node.states['power_state'] = 'power on'
        base.power_off(self.driver, 'a')
        self.assertEqual('power off', self.node.targets[-1][0])

    def test_a_node_that_is_busy(self):
        self.node.refusals = [(409, b'locked')] * 3 + [(503, b'busy')]
        self.driver.power_on('a')
        self.assertEqual(1008, self.waiting.now_s)
        self.node.states['power_state'] = 'power off'
        self.node.refusals = [(409, b'locked')] * 99
        self.fails(self.driver.power_on, 'not unlocked within 60 s',
                   'locked')

    def test_a_node_without_soft_power_off(self):
        self.driver.power_on('a')
        self.node.refusals = [(400, b'soft power off is not supported')]
        base.power_off(self.driver, 'a')
        self.assertEqual('power off', self.node.targets[-1][0])

    def test_under_way(self):
        self.node.states.update(power_state='power on',
                                target_power_state='power off')
        self.waiting.at = {1010: lambda: self.node.states.update(
            power_state='power on', target_power_state=None)}
        self.driver.power_on('a')
        self.assertEqual(1010, self.waiting.now_s)

    def test_names(self):
        self.set_hosts(b={'ironic': {'node': 'a'}})
        self.driver = ironic.Ironic(self.conf, self.waiter)
        self.assertFalse(self.driver.is_on('b'))
        nodes = [{'uuid': 'u1', 'instance_info': {'display_name': 'd'}},
                 {'uuid': self.node.uuid,
                  'instance_info': {'display_name': 'c'}},
                 {'uuid': 'u2', 'instance_info': {'display_name': 'd'}},
                 {'uuid': 'u3', 'instance_info': None}]
        self.node.answers['GET', '/v1/nodes'] = {'nodes': nodes}
        self.assertFalse(self.driver.is_on('c'))
        self.fails(self.driver.is_on, '2 nodes', host='d')
        self.fails(self.driver.is_on, '0 nodes', host='e')

    def test_a_node_that_was_enrolled_again(self):
        self.driver.power_on('a')
        renewed = Node('a')
        self.node.answers = renewed.answers
        self.fails(self.driver.is_on, '404')
        self.assertFalse(self.driver.is_on('a'))

    def test_errors_and_rubbish(self):
        for path in ('/v1/nodes/a', f'/v1/nodes/{self.node.uuid}/states'):
            kept = self.node.answers['GET', path]
            for answer in ((401, b''), (500, b'<h1>'), b'<', b'[]', b'7',
                           {'power_state': 'error', 'last_error': 'x'}):
                self.node.answers['GET', path] = answer
                self.fails(self.driver.is_on)
            self.node.answers['GET', path] = kept
        self.set(ironic_url=self.nobody())
        self.fails(ironic.Ironic(self.conf).is_on, 'Unable to establish')


class TestDrivers(base.PowerTestCase):

    def test_each_host_has_its_own(self):
        self.set(driver='command', command_status='true')
        self.set_hosts(b={'driver': 'redfish'}, d={
            'command': {'status': 'false'}})
        drivers = driver.Drivers(self.conf)
        self.assertIs(drivers.of('a'), drivers.of('c'))
        self.assertTrue(drivers.is_on('a'))
        self.assertFalse(drivers.is_on('d'))
        self.assertIsInstance(drivers.of('b'), redfish_power.Redfish)

    def test_unknown(self):
        self.set(driver='magic')
        exc = self.assertRaises(exceptions.InvalidConfiguration,
                                driver.Drivers, self.conf)
        self.assertIn("driver names 'magic'; known are: command, ironic, "
                      'redfish', str(exc))
        self.set(driver='command')
        self.set_hosts(a={'driver': 'majic'})
        exc = self.assertRaises(exceptions.InvalidConfiguration,
                                driver.Drivers, self.conf)
        self.assertIn("hosts_file for a names 'majic'", str(exc))
