# SPDX-License-Identifier: Apache-2.0
"""Options that make no sense keep a service from its start, in one sentence.
"""

import pathlib
import tempfile
import unittest

import nova.conf.paths
import nova.conf.rpc
import nova.conf.scheduler
from oslo_config import cfg

from nova_preempt.api import application_factory
from nova_preempt.cmd import startup_option_rules
import nova_preempt.conf
from nova_preempt.conf import option_checks
from tests import processes

_MODULE = 'nova_preempt.cmd.'

# Lines of nova.conf, and how what is said of them begins.
CREDENTIALS = ('[preemption]\nauth_type = none\n'
               'endpoint_override = http://127.0.0.1:1\n')
VALUES = (
    ('[preemption]\nactions = shelve,explode',
     ('[preemption]actions: Valid values are [delete, shelve, stop, migrate], '
      "but found 'explode'")),
    ('[preemption]\nrepeat_cost_s = x',
     '[preemption]repeat_cost_s: invalid literal for int() with base'),
    ('[backlog]\nbatch_mode = oops',
     ('[backlog]batch_mode: Valid values are [off, greedy, exact], '
      "but found 'oops'")),
    ('[classes]\nqos_class = silver',
     '[classes]qos_class: Value should be NAME:VALUE pairs'),
    ('[preemption]\nactions = $nothing', '[preemption]actions: '),
)
RULES = (
    ('[preemption]\ncost = cheapest',
     "[preemption]cost is 'cheapest'; known are: count, "),
    ('[preemption]\nheadroom = VCPU',
     "[preemption]headroom: 'VCPU' must be CLASS:AMOUNT"),
    ('[classes]\nenabled = true',
     '[classes]qos_class: 0 classes are defin'),
    ('[classes]\nenabled = true\n[preemption]\nactions = stop',
     '[preemption]actions is stop; with [classes]enabled it must include '),
    ('[preemption_database]\nconnection = nowhere',
     '[preemption_database]connection must be the URL of a database'),
    ('[preemption_database]\nconnection = oracles://me:hush@host/x',
     '[preemption_database]connection begins with oracles://'),
    (('[reservation]\nlease_service = x\n[filter_scheduler]\n'
     'enabled_filters = ReservationFilter'),
     "[reservation]lease_service is 'x'; known are: blazar, native"),
)
TRANSPORT = (
    ('[DEFAULT]\ntransport_url = foo',
     '[DEFAULT]transport_url cannot be used: No scheme specified'),
    ('[DEFAULT]\ntransport_url = foo://me:hush@host/',
     ('[DEFAULT]transport_url cannot be used: Failed to load transport driver '
      '"foo"')),
    ('[DEFAULT]\ntransport_url = rabbit://me:hush@host:port/',
     '[DEFAULT]transport_url cannot be used: ValueError'),
)
SECRETS = (
    ('[backlog]\nenabled = true\nsecret_key_file = /nowhere/x',
     '[backlog]secret_key_file /nowhere/x: No such file or directory.'),
)
OF_SCHEDULER = (
    ('[preemption]\nmaximum_notice_s = 1561',
     ('[preemption]maximum_notice_s is 1561 s; with termination_timeout_s '
      '120 s and [DEFAULT]long_rpc_timeout 1800 s no notice is longer than '
      '1560 s')),
    ('[preemption_quota]\nallocation_project_id = p',
     '[preemption_quota]allocation_project_id needs limits'),
    ('[preemption_quota]\ndriver = options\nproject_limits = normal_vcpus:1',
     '[preemption_quota]project_limits has '),
    ('[preemption]\nauth_type = passwort',
     '[preemption]auth_type is passwort: The plugin passwort could not be '),
    ('[preemption]\nauth_type = password',
     ('[preemption]auth_type is password: Auth plugin requires parameters '
      'which were not given: auth_url')),
)
OF_ENGINE = (
    ('[preemption]\nauth_type =', '[preemption]auth_type is not set'),
    ('[reservation]\nranking = x',
     "[reservation]ranking is 'x'; known are: best_fit, energy, name"),
    ('[backlog]\nenabled = true\norder = x',
     "[backlog]order is 'x'; known are: fair_share, fifo, promethee, qos"),
    ('[backlog]\nenabled = true\norder = qos',
     '[backlog]order is qos, but [classes]enabled is false'),
    ('[backlog]\nenabled = true\npriority_weights = time:x',
     "[backlog]priority_weights has 'x' for time"),
    ('[energy]\nenabled = true\ndriver = x',
     "[energy]driver names 'x'; known are: command, "),
    ('[energy]\nenabled = true\nforecast = x',
     "[energy]forecast is 'x'; known are: ewma, "),
    ('[energy]\nenabled = true\nhosts_file = /nowhere/x',
     '[energy]hosts_file: /nowhere/x: [Errno 2] No such file'),
    ('[energy]\nsources = x', "[energy]sources names 'x'; known are: "),
)


OF_API = (
    ('[preemption_api]\naudit_map_file = /nowhere/x',
     '[preemption_api]audit_map_file /nowhere/x cannot be used: '),
    ('[preemption_database]\nconnection = nowhere',
     '[preemption_database]connection must be the URL of a database'),
)


class FileTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text):
        path = self.folder / 'nova.conf'
        path.write_text(f'[DEFAULT]\nstate_path = {self.folder}\n'
                        f'transport_url = fake:/\n{text}\n')
        return str(path)


class TestFaults(FileTestCase):

    def read(self, text):
        conf = cfg.ConfigOpts()
        for module in (nova.conf.paths, nova.conf.rpc, nova.conf.scheduler,
                       nova_preempt.conf):
            module.register_opts(conf)
        conf(['--config-file', self.write(text)])
        # Nova's groups are the same in each configuration.
        conf.clear_override('enabled_filters', 'filter_scheduler')
        return conf

    def assert_faults(self, cases, rules, others=''):
        for text, begin in cases:
            found = option_checks.find_faults(self.read(f'{others}{text}'),
                                              rules)
            with self.subTest(text):
                self.assertEqual([begin], [item[:len(begin)]
                                           for item in found])
                self.assertNotIn('hush', found[0])
                self.assertNotIn('\n', found[0])

    def test_faults_of_the_scheduler(self):
        self.assert_faults((*VALUES, *RULES, *TRANSPORT, *OF_SCHEDULER),
                           startup_option_rules.SCHEDULER)

    def test_faults_of_the_engine(self):
        self.assert_faults((*VALUES, *RULES, *TRANSPORT, *SECRETS,
                            *OF_ENGINE),
                           startup_option_rules.ENGINE, CREDENTIALS)

    def test_faults_of_the_api(self):
        self.assert_faults((*VALUES, *TRANSPORT, *SECRETS, *OF_API),
                           application_factory.RULES)

    def test_defaults_are_fine(self):
        conf = self.read('')
        for rules in (startup_option_rules.SCHEDULER,
                      application_factory.RULES):
            self.assertEqual([], option_checks.find_faults(conf, rules))


class TestLastValidValues(FileTestCase):

    def test_a_bad_value_is_not_taken(self):
        conf = cfg.ConfigOpts()
        for module in (nova.conf.paths, nova.conf.scheduler,
                       nova_preempt.conf):
            module.register_opts(conf)
        conf(['--config-file', self.write(
            '[preemption]\nactions = shelve\nmigrate_timeout_s = 5')])
        good = option_checks.LastValidValues(conf)
        self.write('[preemption]\nactions = shelve,explode\n'
                   'migrate_timeout_s = 7')
        with self.assertLogs('nova_preempt.conf.option_checks',
                             'ERROR') as logs:
            conf.mutate_config_files()
        self.assertIn('[preemption]actions keeps its value: Valid values are',
                      logs.output[0])
        self.assertEqual((['shelve'], 7), (conf.preemption.actions,
                                           conf.preemption.migrate_timeout_s))
        self.assertEqual({('preemption', 'actions')}, good.kept)
        self.write('[preemption]\nactions = stop')
        conf.mutate_config_files()
        self.assertEqual((['stop'], 60), (conf.preemption.actions,
                                          conf.preemption.migrate_timeout_s))
        self.assertEqual(set(), good.kept)


class TestPrograms(FileTestCase):

    def run_program(self, name, *argv):
        """Return (exit status, error output)."""
        return processes.run_main(_MODULE + name, *argv)[::2]

    def assert_nothing_was_made(self):
        self.assertLessEqual({path.name for path in self.folder.iterdir()},
                             {'nova.conf'})

    def test_bad_options(self):
        for text, begin in (VALUES[0], TRANSPORT[0]):
            self.assert_refused(self.write(f'{text}\n{CREDENTIALS}'), begin)

    def assert_refused(self, conf, text):
        for name, code in (('scheduler', 1), ('engine', 1), ('api', 1),
                           ('manage', 2)):
            argv = ['verify'] if name == 'manage' else []
            found, err = self.run_program(name, '--config-file', conf, *argv)
            self.assertEqual((code, f'nova-preempt-{name}: {text}\n'),
                             (found, _last(err)))
            self.assertNotIn('Traceback', err)
        code, out, err = processes.run_main(
            f'{_MODULE}status', '--config-file', conf, 'upgrade', 'check')
        self.assertEqual(2, code, err)
        self.assertIn('Check: Options', out)
        # The table breaks lines.
        self.assertIn(text[-20:], out)
        self.assertNotIn('Traceback', out + err)
        self.assert_nothing_was_made()

    def test_a_file_that_is_not_there(self):
        path = str(self.folder / 'x.conf')
        for name, code in (('scheduler', 1), ('engine', 1), ('api', 1),
                           ('manage', 2), ('status', 2), ('benchmark', 1)):
            argv = {'manage': ['verify'], 'status': ['upgrade', 'check']}
            found, err = self.run_program(
                name, '--config-file', path, *argv.get(name, ()))
            self.assertEqual(
                (code, (f'nova-preempt-{name}: Failed to find some config '
                 f'files: {path}\n')), (found, _last(err)))
            self.assertNotIn('Traceback', err)

    def test_invalid_files(self):
        path = self.folder / 'nova.conf'
        path.write_bytes(b'\xff[DEFAULT]\n')
        for name, code in (('scheduler', 1), ('engine', 1), ('api', 1),
                           ('manage', 2), ('status', 2)):
            argv = {'manage': ['verify'], 'status': ['upgrade', 'check']}
            for bad, why in ((path, "'utf-8' codec can't decode"),
                             (self.folder, '[Errno 21] Is a directory')):
                found, err = self.run_program(
                    name, '--config-file', str(bad), *argv.get(name, ()))
                self.assertEqual(code, found, err)
                self.assertIn(f'nova-preempt-{name}: the configuration '
                              f'cannot be read: {why}', err)
                self.assertNotIn('Traceback', err)

    @unittest.skipIf(cfg.find_config_files('nova'), 'there is one')
    def test_no_file_at_all(self):
        """Nova then keeps SQLite files where it is installed."""
        for name, code in (('scheduler', 1), ('engine', 1), ('api', 1),
                           ('manage', 2)):
            for argv in ((['verify'], ['db', 'sync'], ['decision', 'show'])
                         if name == 'manage' else ([],)):
                found, err = self.run_program(name, *argv)
                self.assertEqual(code, found, err)
                self.assertIn(f'nova-preempt-{name}: no nova.conf was found',
                              err)
        code, out, err = processes.run_main(f'{_MODULE}status', 'upgrade',
                                            'check')
        self.assertEqual(2, code, err)
        self.assertIn('no nova.conf was found in the default', out)

    def test_reading_commands_create_nothing(self):
        conf = self.write('')
        for argv in (['verify'], ['decision', 'show'], ['pauses'],
                     ['hand-back'], ['db', 'version'],
                     ['db', 'purge', '--days', '1']):
            code, err = self.run_program('manage', '--config-file', conf,
                                         *argv)
            if argv[0] == 'db' and argv[1] == 'version':
                self.assertEqual(0, code, err)
            else:
                self.assertEqual((2, ('nova-preempt-manage: The database of '
                                  '[preemption_database]connection has no '
                                      'tables: run "nova-preempt-manage db '
                                      'sync".\n')), (code, _last(err)))
        self.run_program('status', '--config-file', conf, 'upgrade', 'check')
        self.assert_nothing_was_made()


def _last(text):
    return text.splitlines(keepends=True)[-1] if text else ''


if __name__ == '__main__':
    unittest.main()
