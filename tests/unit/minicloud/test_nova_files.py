# SPDX-License-Identifier: Apache-2.0
"""Nova's configuration, of which ours is the fragment of the guide."""

import configparser
import dataclasses
import pathlib
import tempfile
import unittest
from unittest import mock

from minicloud import layout as layouts
from minicloud import nova_files
from minicloud import services


class TestNovaFiles(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.layout = layouts.Layout(
            pathlib.Path(directory.name), pathlib.Path('/venv'),
            layouts.Settings(computes=2, port_base=30000, private=()))
        self.layout.make_directories()
        (self.layout.etc / 'nova').mkdir()

    def _read(self, name):
        # Options may be there several times, as oslo.config has it.
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read(self.layout.etc / 'nova' / name)
        return parser

    def test_the_fragment_is_for_this_cloud(self):
        nova_files.write(self.layout)
        conf = self._read('nova.conf')
        self.assertEqual('nova-preempt', conf['preemption']['username'])
        self.assertEqual('http://127.0.0.1:30000/v3',
                         conf['preemption']['auth_url'])
        self.assertEqual(
            'mysql+pymysql://minicloud_30000_nova_preempt:secret@127.0.0.1:'
            '3306/minicloud_30000_nova_preempt',
            conf['preemption_database']['connection'])
        self.assertIn('PreemptibleFilter,ReservationFilter',
                      conf['filter_scheduler']['enabled_filters'])
        self.assertEqual('true', conf['reservation']['enabled'])

    def test_the_plugin_of_devstack_writes_the_same(self):
        nova_files.write(self.layout)
        ours = self._read('nova.conf')
        layout = dataclasses.replace(
            self.layout, settings=dataclasses.replace(
                self.layout.settings, devstack=True))
        placement = self.layout.etc / 'placement' / 'placement.conf'
        placement.parent.mkdir()
        for _again in range(2):
            nova_files.write(layout)
            theirs = self._read('nova.conf')
            self.assertEqual(set(ours), set(theirs))
            for section in ('preemption', 'preemption_database'):
                wanted = dict(ours[section])
                if section == 'preemption':
                    # For it DevStack says which, and we do not.
                    wanted['interface'] = 'public'
                self.assertEqual(wanted, dict(theirs[section]))
            self.assertEqual('True', theirs['reservation']['enabled'])
            self.assertIn('DifferentHostFilter,PreemptibleFilter,'
                          'ReservationFilter',
                          theirs['filter_scheduler']['enabled_filters'])
            self.assertIn('allocation_conflict_retry_count = 1',
                          placement.read_text())

    def test_a_fragment_that_has_changed_is_told(self):
        fragment = self.layout.directory / 'fragment'
        fragment.write_text(nova_files.FRAGMENT.read_text().replace(
            'username', 'user'))
        with (mock.patch.object(nova_files, 'FRAGMENT', fragment),
              self.assertRaisesRegex(ValueError, 'username')):
            nova_files.write(self.layout)

    def test_computes_have_no_database_and_a_directory_each(self):
        nova_files.write(self.layout)
        self.assertNotIn('database', self._read('nova-compute.conf'))
        self.assertNotIn('api_database', self._read('nova-compute.conf'))
        # Which would end a live migration, and leave the server in ERROR.
        self.assertEqual('true', self._read('nova-compute.conf')[
            'workarounds']['disable_group_policy_check_upcall'])
        self.assertEqual(2, len({
            self._read(f'{name}.conf')['DEFAULT']['state_path']
            for name in ('compute1', 'compute2')}))

    def test_each_process_has_a_port_for_metrics(self):
        nova_files.write(self.layout)
        found = {name: self._read(f'{name}.conf') for name in (
            'nova-preempt-scheduler-1', 'nova-preempt-scheduler-2',
            'nova-preempt-engine-1', 'nova-preempt-engine-2')}
        self.assertEqual(
            ['30010', '30011', '30012', '30013'],
            [conf['preemption']['metrics_port'] for conf in found.values()])
        self.assertEqual(2 * ['controller1', 'controller2'], [
            conf['DEFAULT']['host'] for conf in found.values()])
        described = services.describe(self.layout)
        for name in found:
            command = described[name].command
            self.assertEqual((
                '/venv/bin/python', '-m', 'minicloud.inside.service',
                f'{self.layout.etc}/nova/constants.json', name[:-2]),
                command[:5])
            self.assertIn('--config-file='
                          f'{self.layout.etc}/nova/{name}.conf', command)
            self.assertIn(name, self.layout.own_ports())

    def test_extra_options_stay(self):
        nova_files.write(self.layout)
        nova_files.extra(self.layout).write_text('[energy]\n')
        nova_files.write(self.layout)
        self.assertEqual('[energy]\n',
                         nova_files.extra(self.layout).read_text())
        self.assertEqual('{}',
                         nova_files.constants(self.layout).read_text())

    def test_settings_are_kept(self):
        self.assertIsNone(self.layout.load())
        self.layout.save()
        other = layouts.Layout(self.layout.directory, self.layout.venv)
        self.assertEqual(self.layout, other.load())
