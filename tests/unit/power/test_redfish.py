# SPDX-License-Identifier: Apache-2.0
"""Redfish: sushy-tools' emulator, and controllers that do as they like."""

import base64
import contextlib
import time

import fixtures

from nova_preempt.power import driver
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from nova_preempt.power.drivers import redfish_power
from nova_preempt.power.sources import redfish as redfish_source
from tests.unit.power import base
from tests.unit.power import emulator

ROOT = '/redfish/v1/'
SYSTEMS = '/redfish/v1/Systems'
SYSTEM = '/redfish/v1/Systems/1'
CHASSIS = '/redfish/v1/Chassis/1'
RESET = SYSTEM + '/Actions/ComputerSystem.Reset'


class TestUnreachable(base.PowerTestCase):

    def test_the_password_of_an_address_is_not_told(self):
        self.set(redfish_address=self.nobody().replace('//', '//me:hush@'))
        exc = self.assertRaises(
            power_errors.PowerError,
            redfish_power.Redfish(self.conf, driver.ConditionPoller()).is_on,
            'a')
        self.assertIn('http://***@127.0.0.1', str(exc))
        for text in (str(exc), exc.cause):
            self.assertNotIn('hush', text)


class TestEmulator(base.PowerTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.emulator = emulator.Emulator('a', 'b')
        cls.addClassCleanup(cls.emulator.close)

    def setUp(self):
        super().setUp()
        self.set(redfish_address=self.emulator.url)
        self.set_hosts(**{
            name: {'redfish': {'system': path}}
            for name, path in self.emulator.paths.items()})
        self.driver = redfish_power.Redfish(
            self.conf, driver.ConditionPoller(interval_s=0.2))

    def test_on_and_off(self):
        for host in ('a', 'b'):
            base.power_off(self.driver, host)
        for _time in range(2):
            # Called again it changes nothing.
            self.driver.power_on('a')
            self.assertTrue(self.driver.is_on('a'))
            self.assertEqual('On', self.emulator.state('a'))
        self.assertFalse(self.driver.is_on('b'))
        for _time in range(2):
            base.power_off(self.driver, 'a')
            self.assertFalse(self.driver.is_on('a'))
            self.assertEqual('Off', self.emulator.state('a'))

    def test_the_controller_is_away_and_comes_back(self):
        self.driver.power_on('a')
        self.emulator.kill()
        try:
            for call in (self.driver.is_on, self.driver.power_on,
                         self.driver.shut_down, self.driver.switch_off):
                exc = self.assertRaises(power_errors.PowerError, call, 'a')
                self.assertEqual('a', exc.host)
                self.assertIn('host a: Unable to connect', str(exc))
        finally:
            self.emulator.start()
        self.assertTrue(self.driver.is_on('a'))

    def test_the_controller_restarts_while_a_host_shuts_down(self):
        self.driver.power_on('a')
        emulated = self.emulator

        class Waiter(driver.ConditionPoller):

            def wait(self, *args):
                emulated.kill()
                return super().wait(*args)

        waits = []

        def sleep(seconds):
            waits.append(seconds)
            if len(waits) == 1:
                emulated.start()
            time.sleep(0.2)

        redfish_power.Redfish(self.conf, Waiter(sleep=sleep)).shut_down('a')
        self.assertNotEqual([], waits)
        self.assertEqual('Off', self.emulator.state('a'))

    def test_an_ambiguous_system(self):
        exc = self.assertRaises(power_errors.PowerError, self.driver.is_on,
                                'c')
        self.assertIn('System count is not exactly one', str(exc))

    def test_chosen_by_the_configuration(self):
        drivers = driver.Drivers(self.conf)
        drivers.power_on('b')
        self.assertTrue(drivers.is_on('b'))
        base.power_off(drivers, 'b')
        self.assertEqual('Off', self.emulator.state('b'))

    def test_a_controller_without_watts(self):
        source = redfish_source.Redfish(self.conf, self.conf.energy)
        exc = self.assertRaises(power_errors.SourceError, source.read,
                                ['a', 'b'])
        self.assertEqual('host a: its controller reports no watts', str(exc))


class ControllerTestCase(base.PowerTestCase):

    def setUp(self):
        super().setUp()
        self.site = base.Site()
        self.system = {
            'Id': '1', 'PowerState': 'On',
            # Which sushy wants to know up to the one of 2025.2.
            'Boot': {},
            'Actions': {'#ComputerSystem.Reset': {
                'target': RESET, 'ResetType@Redfish.AllowableValues': [
                    'On', 'ForceOff', 'GracefulShutdown']}},
            'Links': {'Chassis': [{'@odata.id': CHASSIS}]}}
        self.chassis = {'Id': '1', 'Name': 'chassis',
                        'ChassisType': 'RackMount'}
        self.site.answers = {
            ('GET', ROOT): {'Id': 'root', 'RedfishVersion': '1.6.0',
                            'Systems': {'@odata.id': SYSTEMS}},
            ('GET', SYSTEMS): {'Name': 'systems',
                               'Members': [{'@odata.id': SYSTEM}]},
            ('GET', SYSTEM): lambda request: self.system,
            ('GET', CHASSIS): self.chassis,
            ('POST', RESET): self.reset,
        }
        self.resets = []
        self.set(redfish_address=self.serve(self.site))
        self.waiting = base.Waiting()

    def reset(self, request):
        self.resets.append(request.json['ResetType'])
        if request.json['ResetType'] == 'ForceOff':
            self.system['PowerState'] = 'Off'
        return 204, b''

    def add(self, path, document):
        self.site.answers['GET', path] = document
        return {'@odata.id': path}


class TestDriver(ControllerTestCase):

    def setUp(self):
        super().setUp()
        self.driver = redfish_power.Redfish(self.conf, driver.ConditionPoller(
            self.waiting.clock, self.waiting.sleep))

    def test_a_host_that_does_not_shut_down_is_switched_off(self):
        base.power_off(self.driver, 'a')
        self.assertEqual(['GracefulShutdown', 'ForceOff'], self.resets)
        self.assertGreaterEqual(self.waiting.now_s, 1300)

    def test_a_host_is_on_until_it_is_switched_off(self):
        exc = self.assertRaises(power_errors.PowerError, self.driver.shut_down,
                                'a')
        self.assertEqual('host a: it was not shut down within 300 s', str(exc))
        self.assertEqual(['GracefulShutdown'], self.resets)
        self.driver.switch_off('a')
        self.assertEqual('ForceOff', self.resets[-1])
        self.assertFalse(self.driver.is_on('a'))

    def test_a_host_that_is_off_is_left_alone(self):
        self.system['PowerState'] = 'Off'
        self.driver.switch_off('a')
        base.power_off(self.driver, 'a')
        self.assertEqual([], self.resets)

    def test_a_system_without_graceful_shutdown(self):
        self.system['Actions']['#ComputerSystem.Reset'][
            'ResetType@Redfish.AllowableValues'] = ['On', 'ForceOff']
        base.power_off(self.driver, 'a')
        self.assertEqual(['ForceOff'], self.resets)
        self.assertEqual(1000, self.waiting.now_s)

    def test_a_host_that_never_comes_on(self):
        self.system['PowerState'] = 'Off'
        exc = self.assertRaises(power_errors.PowerError, self.driver.power_on,
                                'a')
        self.assertEqual('host a: it was not powered on within 60 s', str(exc))
        self.assertEqual(['On'], self.resets)

    def test_a_host_that_is_powering_off_is_switched_on_later(self):
        self.system['PowerState'] = 'PoweringOff'
        self.assertTrue(self.driver.is_on('a'))
        self.waiting.at = {
            1020: lambda: self.system.update(PowerState='Off'),
            1040: lambda: self.system.update(PowerState='On')}
        self.driver.power_on('a')
        self.assertEqual(['On'], self.resets)

    def test_rubbish(self):
        for answer in ((500, b'<h1>'), (401, b''), (404, b''), b'<html>',
                       b'[]', b'{}', {'Id': '1'}, {'PowerState': 'Odd'},
                       {'Id': '1', 'PowerState': 5}):
            self.site.answers['GET', SYSTEM] = answer
            exc = self.assertRaises(power_errors.PowerError, self.driver.is_on,
                                    'a')
            self.assertEqual('a', exc.host)

    def test_no_address(self):
        self.set(redfish_address='')
        exc = self.assertRaises(power_errors.PowerError, self.driver.is_on,
                                'a')
        self.assertIn('the address of its Redfish service', str(exc))

    def test_credentials(self):
        wanted = 'Basic ' + base64.b64encode(b'me:secret').decode()

        def system(request):
            if request.headers.get('Authorization') != wanted:
                return 401, b''
            return self.system

        self.site.answers['GET', SYSTEM] = system
        self.assertRaises(power_errors.PowerError, self.driver.is_on, 'a')
        self.set(redfish_username='me', redfish_password='wrong')
        self.assertRaises(power_errors.PowerError, self.driver.is_on, 'a')
        self.set_hosts(a={'redfish': {'password': 'secret'}})
        self.assertTrue(redfish_power.Redfish(self.conf).is_on('a'))


class TestSource(ControllerTestCase):

    def read(self, *hosts):
        source = redfish_source.Redfish(self.conf, self.conf.energy,
                                        base.clock)
        return {host: reading.watts for host, reading
                in source.read(hosts).items()}

    def test_environment_metrics_first(self):
        self.chassis['EnvironmentMetrics'] = self.add(
            '/metrics', {'PowerWatts': {'Reading': 217.5}})
        self.chassis['Power'] = self.add(
            '/power', {'PowerControl': [{'PowerConsumedWatts': 300}]})
        self.assertEqual({'a': 217.5}, self.read('a'))

    def test_power_control(self):
        self.chassis['EnvironmentMetrics'] = self.add('/metrics', {})
        self.chassis['Power'] = self.add('/power', {'PowerControl': [
            {'Name': 'Server', 'PowerConsumedWatts': 166},
            {'Name': 'CPU', 'PowerConsumedWatts': 60},
            {'Name': 'unknown', 'PowerConsumedWatts': None}]})
        self.assertEqual({'a': 166}, self.read('a'))

    def test_sensors(self):
        sensors = {
            '/s/1': {'ReadingType': 'Temperature', 'Reading': 40},
            '/s/2': {'ReadingType': 'Power', 'Reading': 90,
                     'PhysicalContext': 'CPU'},
            '/s/3': {'ReadingType': 'Power', 'Reading': 222,
                     'PhysicalContext': 'Chassis'}}
        self.chassis['Sensors'] = self.add('/s', {'Members': [
            self.add(path, sensor) for path, sensor in sensors.items()]})
        self.assertEqual({'a': 222}, self.read('a'))
        # Of several parts none is the host.
        sensors['/s/3']['PhysicalContext'] = 'Memory'
        self.assertRaises(power_errors.SourceError, self.read, 'a')

    def test_documents_that_are_not_there(self):
        for key in ('EnvironmentMetrics', 'Power', 'Sensors'):
            self.chassis[key] = {'@odata.id': '/nothing'}
        exc = self.assertRaises(power_errors.SourceError, self.read, 'a')
        self.assertIn('its controller reports no watts', str(exc))

    def test_one_controller_away_does_not_cost_the_others(self):
        self.chassis['Power'] = self.add(
            '/power', {'PowerControl': [{'PowerConsumedWatts': 300}]})
        self.set_hosts(b={'redfish': {'address': self.nobody()}})
        self.assertEqual({'a': 300, 'd': 300}, self.read('a', 'b', 'd'))

    def test_late_controllers_have_no_reading(self):
        self.site.hangs = True
        self.useFixture(fixtures.MockPatchObject(power_readings, 'TIMEOUT_S',
                                                 1))
        # Its call may fail before it is given up.
        with contextlib.suppress(power_errors.SourceError):
            self.assertEqual({}, self.read('a', 'b'))

    def test_hosts_without_controllers_are_not_asked(self):
        self.set(redfish_address='')
        self.assertEqual({}, self.read('a', 'b'))
