# SPDX-License-Identifier: Apache-2.0
"""[energy]hosts_file: errors name the place of the fault."""

import string
import traceback

import hypothesis
from hypothesis import strategies

from nova_preempt.power import hosts_file
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors
from tests.unit.core import support
from tests.unit.power import base

NAMES = strategies.text(string.ascii_letters + string.digits + '._-:',
                        min_size=1)


class TestFile(base.PowerTestCase):

    def load(self, content):
        return power_hosts.HostsFile(self.write('hosts.yaml', content))

    def test_settings_of_a_host(self):
        hosts = self.load("""
node1:
  driver: command
  command: {on: 'a b', off: [c, '{host}']}
  source_names: {kwapi: probe.17}
node2: {}
""")
        self.assertEqual('command', hosts.driver('node1', 'redfish'))
        self.assertEqual({'on': 'a b', 'off': ['c', '{host}']},
                         hosts.section('node1', 'command'))
        self.assertEqual('probe.17', hosts.source_name('node1', 'kwapi'))
        self.assertEqual('node1', hosts.source_name('node1', 'gnocchi'))
        self.assertEqual({'command': 'node1'}, hosts.drivers())
        for name in ('node2', 'node3'):
            self.assertEqual('redfish', hosts.driver(name, 'redfish'))
            self.assertEqual({}, hosts.section(name, 'command'))

    def test_values_that_yaml_1_1_would_convert(self):
        hosts = self.load("""
off:
  command:
    mac: 52:54:00:12:34:56
    on: [sleep, '5']
    off: yes
""")
        self.assertEqual({'mac': '52:54:00:12:34:56', 'on': ['sleep', '5'],
                          'off': 'yes'}, hosts.section('off', 'command'))
        for text, value in (('1.2e12', 1.2e12), ('350', 350), ('-.5', -0.5),
                            ('true', True), ('', None), ('~', None),
                            ('1:30', '1:30'), ('2026-11-20', '2026-11-20'),
                            ('.inf', float('inf')), ('no', 'no')):
            self.assertEqual(
                {'a': value}, hosts_file.load_document(f'a: {text}'), text)

    def test_no_file_and_an_empty_file(self):
        for hosts in (power_hosts.HostsFile(), self.load('')):
            self.assertEqual({}, hosts.section('a', 'redfish'))

    def test_mistakes(self):
        path = self.directory / 'hosts.yaml'
        for content, message in (
                ('a: [', 'line 1, column 5: invalid YAML: expected the node'),
                ('- a', "hosts.yaml: must be of type 'object'"),
                ('a:', "host a: must be of type 'object'"),
                ('7: {}', 'a host name must be a string'),
                ('a: {drivr: x}',
                 'host a: it has an unknown key; the known keys are '),
                ('a: {driver: 5}', "host a: driver: must be of type 'string'"),
                ('a: {redfish: {address: bmc}}',
                 "host a: redfish.address: must match '^https?:"),
                ('a: {redfish: {system: "1"}}',
                 "host a: redfish.system: must match '^/'"),
                ('a: {redfish: {password: 12345}}',
                 "host a: redfish.password: must be of type 'string'"),
                ('a: {command: {mac: 52-54}}',
                 'host a: command.mac: must match'),
                ('a: {command: {on: 5}}',
                 'host a: command.on: has the wrong type'),
                ('a: {command: {on: []}}',
                 'host a: command.on: has the wrong type')):
            exc = self.assertRaises(power_errors.HostsFileError, self.load,
                                    content)
            self.assertIn(f'{path}: ', str(exc))
            self.assertIn(message, str(exc))
            self.assertNotIn('12345', str(exc))

    def test_passwords_stay_out_of_mistakes(self):
        for content in (
                'a: {redfish: [{password: hush}]}', 'a: {redfish: hush}',
                'a: {redfish: {address: "me:hush@bmc"}}',
                'a: {command: {on: [ipmitool, -P, hush, 5]}}',
                'a: {command: {on: {password: hush}}}',
                '- {redfish: {password: hush}}',
                'a: {driver: {password: hush}}', 'hush', '- hush',
                'a: hush', 'a: {redfish: {address: hush}}',
                'a: {redfish: {password hush}}', 'a: {redfish: {hush}}',
                'a: {redfish: {password, hush}}', 'a: {hush: {}}',
                'password: x\nhush:', '{password, hush}',
                'a: {redfish: {system: hush}}', 'a: {source_names: {hush: 5}}',
                'a: {redfish: {verify: {hush: 5}}}',
                'a: {redfish: {password: !!int hush}}',
                'a: {redfish: {password: !!float hush}}',
                'a: {redfish: {password: !!bool hush}}',
                'a: {redfish: {password: !!timestamp hush}}',
                'a: {redfish: {? [hush] : 1}}'):
            exc = self.assertRaises(power_errors.HostsFileError, self.load,
                                    content)
            self.assertNotIn('hush', str(exc), content)
        exc = self.assertRaises(power_errors.HostsFileError,
                                power_hosts.command,
                                'ipmitool -P "hush', 'n1')
        self.assertNotIn('hush', str(exc))

    def test_passwords_stay_out_of_yaml_errors(self):
        for value in ('hush: x: y', '"hush', '*hush', '!hush', "!hu'hush",
                      '&hush &hush x', '%hush', '"\\hush"', '[hush', '@hush',
                      '`hush', '{hush: [}', '|hush', "'hush' hush",
                      '\thush', 'hush\x07', '"hush\\xhush"',
                      '!<tag:hush', '&a hush\nb: *hush'):
            content = f'a:\n  redfish:\n    password: {value}\n'
            with self.subTest(value):
                exc = self.assertRaises(power_errors.HostsFileError, self.load,
                                        content)
                told = ''.join(traceback.format_exception(exc))
                self.assertNotIn('hush', told.partition('Error: ')[2])
                self.assertIn(f"{self.directory / 'hosts.yaml'}: ", str(exc))
                self.assertNotIn('hush', str(exc))

    def test_options_that_may_hold_passwords_are_secret(self):
        for name in ('prometheus_url', 'kwapi_url', 'gnocchi_url',
                     'ironic_url', 'redfish_password', 'command_on',
                     'command_off', 'command_force_off', 'command_status'):
            self.assertTrue(
                self.conf._groups['energy']._opts[name]['opt'].secret, name)

    def test_all_mistakes_are_told(self):
        exc = self.assertRaises(power_errors.HostsFileError, self.load,
                                'a: {driver: 5}\nb: {driver: 6}')
        self.assertIn('host a: driver: must be', str(exc))
        self.assertIn('host b: driver: must be', str(exc))

    def test_no_file(self):
        exc = self.assertRaises(power_errors.HostsFileError,
                                power_hosts.HostsFile,
                                '/nothing/hosts.yaml')
        self.assertIn('/nothing/hosts.yaml', str(exc))


class TestTemplates(base.PowerTestCase):

    def test_fields(self):
        for text, expected in (
                ('https://{short}-bmc', 'https://n1-bmc'),
                ('{host}:{short}', 'n1.example.org:n1'),
                ('', ''), ("awk '{print $1}'", "awk '{print $1}'")):
            self.assertEqual(expected,
                             power_hosts.expand(text, 'n1.example.org'))

    def test_unknown_field(self):
        exc = self.assertRaises(power_errors.HostsFileError,
                                power_hosts.expand,
                                'https://{hots}', 'n1')
        self.assertIn('unknown field in braces', str(exc))
        self.assertIn('known fields are {host} and {short}', str(exc))

    def test_arguments_stay_out_of_messages(self):
        for text, name in (('--password=hush{x}', 'n1'), ('{hush}', 'n1'),
                           ('hush{host}', '-n1')):
            exc = self.assertRaises(power_errors.HostsFileError,
                                    power_hosts.expand, text, name)
            self.assertNotIn('hush', str(exc))

    def test_unsafe_names(self):
        for name in ('-oProxyCommand=x', 'a b', 'a/b', 'a@b', 'a;b', '', '$a',
                     'a\n'):
            self.assertRaises(power_errors.HostsFileError, power_hosts.expand,
                              'ssh {host}', name)
            # They harm nobody where they are not used.
            self.assertEqual('ssh a', power_hosts.expand('ssh a', name))

    def test_commands(self):
        for value in ('ssh "{host}" \'echo a b\'',
                      ['ssh', '{host}', 'echo a b']):
            self.assertEqual(['ssh', 'n1', 'echo a b'],
                             power_hosts.command(value, 'n1'))
        self.assertRaises(power_errors.HostsFileError, power_hosts.command,
                          'echo "', 'n1')

    @support.LAW
    @hypothesis.given(NAMES, strategies.lists(
        strategies.sampled_from(('ssh', '{host}', 'a{short}b', 'x y'))))
    def test_a_name_never_makes_more_arguments(self, name, value):
        try:
            arguments = power_hosts.command(value, name)
        except power_errors.HostsFileError:
            self.assertIn(name[0], '.-:')
            return
        self.assertEqual(len(value), len(arguments))
        self.assertNotIn('-', [argument[:1] for argument in arguments])
