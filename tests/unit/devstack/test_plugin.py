# SPDX-License-Identifier: Apache-2.0
"""Tests of each phase of the DevStack plugin.

By a stand-in of what DevStack promises to plugins, and by the functions of
DevStack where ``DEVSTACK_DIR`` names a checkout of it. The programs that they
would call only write down that they were.
"""

import configparser
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from nova_preempt.conf import opts as all_opts

HERE = pathlib.Path(__file__).parent
REPO = HERE.parents[2]
DEVSTACK_DIR = os.environ.get('DEVSTACK_DIR', '')

PROGRAMS = ('a2dissite', 'a2enmod', 'a2ensite', 'curl', 'mysql', 'openstack',
            'rabbitmqctl', 'sudo', 'systemctl', 'tox', 'uwsgi')
VENV_PROGRAMS = ('nova-preempt-manage', 'nova-preempt-status', 'pip')
OURS = ('etc/**/nova.conf', 'etc/**/placement.conf', 'etc/**/*nova-preempt*',
        'etc/**/*@np-*', 'etc/**/*@n-sch*', 'opt/stack/tempest/etc/*')
UP_TO_START = ('stack:install', 'stack:post-config', 'start')
STACK = (*UP_TO_START, 'stack:extra', 'stack:test-config')


class MultiDict(dict):
    """The values of an option that is there several times, line by line."""

    def __setitem__(self, key, value):
        if isinstance(value, list) and isinstance(self.get(key), list):
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def read_ini(path):
    parser = configparser.RawConfigParser(
        strict=False, dict_type=MultiDict, empty_lines_in_values=False,
        default_section=None)
    parser.optionxform = str
    parser.read(path)
    return parser


class PhasesTestCase(unittest.TestCase):
    """A directory in which DevStack runs.

    :cvar devstack_dir: a checkout of DevStack; '' is the stand-in
    """

    devstack_dir = ''

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        place = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, place)
        cls.root = place / 'root'
        cls.configured = place / 'configured'
        cls.nova_conf = cls.root / 'etc/nova/nova.conf'
        for name in ('units', 'etc/nova', 'etc/placement',
                     'etc/systemd/system', 'etc/apache2/sites-available',
                     'opt/stack/tempest/etc'):
            (cls.root / name).mkdir(parents=True)
        for name, programs in (
                ('bin', PROGRAMS),
                ('opt/stack/data/venv/bin', VENV_PROGRAMS),
                ('opt/stack/requirements/.venv/bin', ('edit-constraints',))):
            (cls.root / name).mkdir(parents=True)
            for program in programs:
                (cls.root / name / program).symlink_to(HERE / 'record.sh')
        # What DevStack itself writes is the same each time, and takes time.
        found = cls.run_bash('configure')
        if found.returncode:
            raise AssertionError(found.stdout)
        (cls.root / 'calls').write_text('')
        cls.root.rename(cls.configured)

    def setUp(self):
        shutil.copytree(self.configured, self.root, symlinks=True)
        self.addCleanup(shutil.rmtree, self.root)

    @classmethod
    def run_bash(cls, *steps, **settings):
        return subprocess.run(
            ['bash', str(HERE / 'run_phases.sh'), *steps], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
            check=False,
            env={'PATH': os.environ['PATH'], 'HOME': str(cls.root),
                 'ROOT': str(cls.root), 'REPO': str(REPO),
                 'DEVSTACK_DIR': cls.devstack_dir, **settings})

    def run_steps(self, *steps, code=0, **settings):
        found = self.run_bash(*steps, **settings)
        self.assertEqual(code, found.returncode, found.stdout)

    def calls(self, program):
        """The arguments of each call of a program so far."""
        return [line.removeprefix(program).strip() for line
                in (self.root / 'calls').read_text().splitlines()
                if line.startswith(f'{program} ')]

    def value(self, section, option, path=None):
        return read_ini(path or self.nova_conf).get(section, option)

    def command(self, service):
        """Return the command of a service's unit."""
        return self.value('Service', 'ExecStart', self.unit(service))

    def unit(self, service):
        return self.root / f'etc/systemd/system/devstack@{service}.service'

    def running(self):
        return sorted(path.name.removesuffix('.service').split('@')[1]
                      for path in (self.root / 'units').iterdir())

    def files(self):
        """Return the texts of the files that the plugin changes."""
        return {str(path.relative_to(self.root)): path.read_text()
                for pattern in OURS for path in self.root.glob(pattern)}


class TestPhases(PhasesTestCase):

    def test_install_goes_where_nova_is(self):
        self.run_steps('stack:install')
        self.assertIn(f'-e {REPO}[mysql,client]', self.calls('pip')[-1])
        self.assertIn('-c ', self.calls('pip')[-1])

    def test_nova_conf_agrees_with_the_guide(self):
        self.run_steps('stack:post-config')
        guide = read_ini(REPO / 'etc/nova-preempt/nova.conf.fragment')
        missing = [(section, option) for section in guide.sections()
                   for option in guide.options(section)
                   if not read_ini(self.nova_conf).has_option(section, option)]
        self.assertEqual([], missing)
        self.assertEqual(guide.get('filter_scheduler', 'available_filters'),
                         self.value('filter_scheduler', 'available_filters'))
        self.assertEqual(guide.get('filter_scheduler', 'weight_classes'),
                         self.value('filter_scheduler', 'weight_classes'))
        filters = self.value('filter_scheduler', 'enabled_filters').split(',')
        self.assertEqual('PreemptibleFilter', filters[-1])
        self.assertIn('DifferentHostFilter', filters)
        self.assertEqual('nova-preempt', self.value('preemption', 'username'))
        self.assertEqual('RegionOne', self.value('preemption', 'region_name'))
        self.assertIn('/nova_preempt?',
                      self.value('preemption_database', 'connection'))

    def test_all_written_options_exist(self):
        """A misspelt option would not be noticed."""
        self.run_steps('stack:post-config',
                       NOVA_PREEMPT_RESERVATIONS='True')
        known = {(group, option.dest) for group, options
                 in all_opts.list_opts() for option in options}
        groups = {group for group, _ in known}
        conf = read_ini(self.nova_conf)
        for group in sorted(groups & set(conf.sections())):
            if group == 'filter_scheduler':
                continue
            for name in conf.options(group):
                # keystoneauth's own have other names there.
                if name not in ('interface', 'username', 'password'):
                    self.assertIn((group, name.replace('-', '_')), known)

    def test_values_of_others_stay(self):
        with self.nova_conf.open('a') as conf:
            conf.write('\n[other]\nenabled_filters = x\n')
        text = self.nova_conf.read_text().replace(
            '[filter_scheduler]',
            '[filter_scheduler]\navailable_filters = other.filters.all\n'
            'weight_classes = other.weights.All')
        self.nova_conf.write_text(text)
        self.run_steps('stack:post-config')
        self.assertEqual(
            ['other.filters.all',
             'nova_preempt.scheduler.filters.all_filters'],
            self.value('filter_scheduler', 'available_filters').split('\n'))
        self.assertEqual(
            'other.weights.All,nova_preempt.scheduler.weights.all_weighers',
            self.value('filter_scheduler', 'weight_classes'))
        self.assertEqual('x', self.value('other', 'enabled_filters'))

    def test_reservations_are_off_until_asked_for(self):
        self.run_steps('stack:post-config')
        self.assertFalse(read_ini(self.nova_conf).has_section('reservation'))
        self.run_steps('stack:post-config', NOVA_PREEMPT_RESERVATIONS='True')
        self.assertEqual('True', self.value('reservation', 'enabled'))
        self.assertTrue(
            self.value('filter_scheduler', 'enabled_filters').endswith(
                'PreemptibleFilter,ReservationFilter'))

    def test_placement_tells_concurrent_claims_apart(self):
        for database in ('mysql', 'postgresql'):
            with self.subTest(database):
                self.run_steps('stack:post-config', DATABASE_TYPE=database)
                path = self.root / 'etc/placement/placement.conf'
                self.assertEqual('1', self.value(
                    'placement', 'allocation_conflict_retry_count', path))
                path.unlink()

    def test_user_and_catalog(self):
        self.run_steps('stack:post-config')
        asked = self.calls('openstack')
        made = [call for call in asked if 'user create' in call]
        self.assertEqual(1, len(made), asked)
        self.assertIn('nova-preempt --password secret', ' '.join(
            made[0].split()))
        self.assertEqual(['service', 'admin'],
                         [call.split('role add ')[1].split()[0]
                          for call in asked if 'role add' in call])
        self.assertEqual(1, sum('service create preemption' in call
                                for call in asked))
        url = 'http://192.0.2.1/preemption'
        self.assertEqual(
            {f'preemption {name} {url}'
             for name in ('public', 'internal', 'admin')},
            {call.split('endpoint create ')[1].split(' --')[0]
             for call in asked if 'endpoint create' in call})

    def test_the_database_is_made_before_its_tables(self):
        self.run_steps('stack:post-config')
        self.assertIn('CREATE DATABASE nova_preempt', self.calls('mysql')[-1])
        self.assertEqual([f'--config-file {self.nova_conf} db sync'],
                         self.calls('nova-preempt-manage'))

    def test_the_api_behind_the_web_server(self):
        self.run_steps('stack:post-config')
        ini = self.root / 'etc/nova/nova-preempt-api.ini'
        self.assertEqual(
            ['nova_preempt.api.wsgi:application', 'true', '8',
             f'OS_NOVA_CONFIG_DIR={self.nova_conf.parent}'],
            [self.value('uwsgi', name, ini)
             for name in ('module', 'need-app', 'threads', 'env')])
        site = (self.root / 'etc/apache2/sites-available'
                / 'nova-preempt-api.conf').read_text()
        self.assertEqual(1, site.count('ProxyPass "/preemption"'), site)

    def test_the_scheduler_is_replaced(self):
        self.run_steps(*UP_TO_START)
        self.assertIn('/nova-scheduler ', self.command('n-sch'))
        self.run_steps('stack:extra')
        self.assertTrue(self.command('n-sch').endswith(
            f'/nova-preempt-scheduler --config-file {self.nova_conf}'))
        self.assertTrue(self.command('np-eng').endswith(
            f'/nova-preempt-engine --config-file {self.nova_conf}'))
        self.assertIn('/nova-preempt-api.ini', self.command('np-api'))
        self.assertTrue(self.command('np-hook').endswith(
            f'/nova-preempt-webhook --config-file {self.nova_conf}'))
        self.assertEqual(['n-sch', 'np-api', 'np-eng', 'np-hook'],
                         self.running())
        # As in the units of etc/systemd, and what DevStack sets stays.
        for service in self.running():
            found = shlex.split(self.value(
                'Service', 'Environment', self.unit(service)))
            self.assertIn('MALLOC_ARENA_MAX=2', found)
            self.assertRegex(' '.join(found), '^PATH=')
        # One that runs goes on with what it was started with.
        asked = [call for call in self.calls('systemctl') if 'n-sch' in call]
        unit = 'devstack@n-sch.service'
        self.assertEqual(
            [f'start {unit}', f'is-enabled {unit}', f'stop {unit}',
             f'disable {unit}', f'enable {unit}', f'start {unit}'],
            asked[1:])
        enabled = (self.root / 'enabled_services').read_text().strip()
        self.assertTrue(enabled.endswith(',np-eng,np-api,np-hook'), enabled)

    def test_a_failed_check_stops_devstack(self):
        self.run_steps(*UP_TO_START)
        status = self.root / 'opt/stack/data/venv/bin/nova-preempt-status'
        for code, ends in ((1, 0), (2, 1)):
            status.unlink()
            status.write_text(f'#!/bin/bash\nexit {code}\n')
            status.chmod(0o755)
            self.run_steps('stack:extra', code=ends)

    def test_a_flavor_to_begin_with(self):
        self.run_steps(*UP_TO_START, 'stack:extra', 'stack:extra')
        made = [call for call in self.calls('openstack')
                if 'flavor create' in call]
        self.assertEqual(1, len(made), made)
        self.assertIn('--property preemptible:enabled=true spot.tiny', made[0])

    def test_no_flavor_where_none_is_wanted(self):
        self.run_steps(*UP_TO_START, 'stack:extra', NOVA_PREEMPT_FLAVOR='')
        self.assertEqual([], [call for call in self.calls('openstack')
                              if 'flavor' in call])

    def test_tempest(self):
        self.run_steps(*STACK)
        self.assertEqual(
            f'-evenv-tempest -- pip install --no-deps --editable {REPO}',
            self.calls('tox')[-1])
        conf = self.root / 'opt/stack/tempest/etc/tempest.conf'
        self.assertEqual(
            ('True', 'RegionOne', 'False'),
            (self.value('service_available', 'nova_preempt', conf),
             self.value('preemption', 'region', conf),
             self.value('preemption-feature-enabled', 'reservation', conf)))

    def test_phases_that_run_twice_write_the_same(self):
        settings = {'NOVA_PREEMPT_RESERVATIONS': 'True'}
        self.run_steps(*STACK, **settings)
        once = self.files()
        for phase in ('install', 'post-config', 'extra', 'test-config'):
            self.run_steps(f'stack:{phase}', f'stack:{phase}', **settings)
            self.assertEqual(once, self.files(), phase)
        self.run_steps('configure', *STACK, **settings)
        self.assertEqual(once, self.files())
        created = [call for call in self.calls('openstack')
                   if 'create' in call and 'or-show' not in call]
        self.assertEqual(len(set(created)), len(created), created)

    def test_a_node_without_the_scheduler_gets_nothing(self):
        before = self.files()
        self.run_steps('stack:install', 'stack:post-config', 'stack:extra',
                       'stack:test-config', ENABLED_SERVICES='n-cpu')
        self.assertEqual(before, self.files())
        self.assertEqual(
            [], [line for line
                 in (self.root / 'calls').read_text().splitlines()
                 if line.startswith(('mysql', 'openstack', 'pip', 'tox'))])

    def test_unstack_stops_our_services(self):
        self.run_steps(*STACK)
        self.run_steps('unstack:')
        # DevStack itself stops n-sch.
        self.assertEqual(['n-sch'], self.running())
        self.run_steps('unstack:')

    def test_clean_leaves_nothing_of_the_api(self):
        self.run_steps(*STACK)
        self.run_steps('unstack:', 'clean:')
        left = [path for path in self.files() if 'nova-preempt' in path]
        self.assertEqual([], left)
        self.assertIn('nova-preempt-api', self.calls('a2dissite'))
        self.run_steps('clean:')


@unittest.skipUnless(DEVSTACK_DIR, 'DEVSTACK_DIR names no checkout')
class TestPhasesOfDevStack(TestPhases):

    devstack_dir = DEVSTACK_DIR

    def test_the_stand_in_does_the_same(self):
        self.run_steps(*STACK)
        theirs = self.files()
        TestPhases.setUpClass()
        self.addCleanup(TestPhases.doClassCleanups)
        other = TestPhases('test_tempest')
        other.setUp()
        other.run_steps(*STACK)
        ours = other.files()
        self.assertEqual(theirs.keys(), ours.keys())
        for section in ('filter_scheduler', 'preemption',
                        'preemption_database'):
            self.assertEqual(
                dict(read_ini(self.nova_conf).items(section)),
                dict(read_ini(other.nova_conf).items(section)), section)


class TestScripts(unittest.TestCase):
    """Checks of make lint, if the linters are installed."""

    def check(self, program, *arguments):
        found = shutil.which(program, path=os.pathsep.join(
            [os.path.dirname(sys.executable), os.environ['PATH']]))
        if found is None:
            self.skipTest(f'{program} is not installed')
        scripts = [str(REPO / 'devstack' / name)
                   for name in ('plugin.sh', 'settings')]
        scripts += [str(path) for path in sorted(HERE.glob('*.sh'))]
        found = subprocess.run([found, *arguments, *scripts], text=True,
                               capture_output=True, check=False)
        self.assertEqual('', found.stdout + found.stderr)

    def test_shellcheck(self):
        self.check('shellcheck', '--shell', 'bash')

    def test_bashate(self):
        self.check('bashate')
