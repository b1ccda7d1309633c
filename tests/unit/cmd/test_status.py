# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-status upgrade check, on options of its own."""

import datetime
import os
import pathlib
import subprocess
import sys
from unittest import mock

from cryptography import fernet
import fixtures
import nova.conf.conductor
import nova.conf.paths
import nova.conf.rpc
import nova.conf.scheduler
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_upgradecheck import upgradecheck
import sqlalchemy as sa
import testtools

from nova_preempt import db
from nova_preempt.cmd import status
from nova_preempt.cmd import status_flavors
import nova_preempt.conf
from nova_preempt.core.reservation import calendar as core
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservations
from nova_preempt.db import schema_upgrade
from tests import tables


class TestChecks(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        for module in (nova.conf.conductor, nova.conf.paths, nova.conf.rpc,
                       nova.conf.scheduler, nova_preempt.conf):
            module.register_opts(self.conf)
        folder = self.useFixture(fixtures.TempDir()).path
        path = os.path.join(folder, 'nova.conf')
        open(path, 'w').close()
        self.conf(['--config-file', path])
        self.set(connection=f'sqlite:///{folder}/test.sqlite',
                 group='preemption_database')
        self.set(auth_type='none', group='preemption')
        self.set(
            group='filter_scheduler',
            available_filters=['nova.scheduler.filters.all_filters',
                               'nova_preempt.scheduler.filters.all_filters'],
            enabled_filters=['ComputeFilter', 'PreemptibleFilter'],
            weight_classes=['nova.scheduler.weights.all_weighers',
                            'nova_preempt.scheduler.weights.all_weighers'])
        self.hosts = self.useFixture(fixtures.MockPatchObject(
            status, '_scheduler_hosts', return_value={'host1'})).mock
        self.flavors = self.useFixture(fixtures.MockPatchObject(
            status, '_flavors', return_value=[
                ('spot', {'preemptible:enabled': 'true',
                          'preemptible:action': 'shelve',
                          'preemptible:notice_s': '30',
                          'hw:cpu_policy': 'dedicated',
                          'blazar:preemptible': 'x'}), ('small', {})])).mock
        self.checks = status.UpgradeChecks(self.conf)

    def set(self, group=None, **values):
        for name, value in values.items():
            self.conf.set_override(name, value, group)
            # Nova's groups belong to all tests of the process.
            self.addCleanup(self.conf.clear_override, name, group)

    def results(self):
        """Return {name: Result} of checks without success."""
        found = {name: check(self.checks)
                 for name, check in self.checks._upgrade_checks}
        return {name: result for name, result in found.items()
                if result.code != upgradecheck.Code.SUCCESS}

    def assert_nothing_found(self):
        self.assertEqual({}, {name: result.details for name, result
                              in self.results().items()})

    def assert_found(self, name, code, text):
        results = self.results()
        self.assertEqual({name: code}, {
            name: result.code.name for name, result in results.items()})
        self.assertIn(text, results[name].details)

    def test_all_is_well(self):
        self.assert_nothing_found()
        tables.make(db.Database(self.conf))
        self.assert_nothing_found()

    def test_classes(self):
        self.set(enabled=True, group='classes')
        self.assert_found('Options', 'FAILURE', 'qos_class: 0 classes')
        silver = {'name': 'silver', 'importance': '1', 'availability': '0.9'}
        self.set(qos_class=[silver], group='classes')
        self.assert_nothing_found()
        self.set(qos_class=[{**silver, 'safety_margin_s': '299'}],
                 group='classes')
        self.assert_found(
            'Classes', 'WARNING',
            'safety_margin_s of class silver is below the pass period, 300 s')
        self.set(qos_class=[silver], group='classes')
        spot = {'preemptible:enabled': 'true'}
        for specs, text in (
                ({**spot, 'preemptible:class': 'gold'},
                 "the class 'gold', which must be one of silver."),
                ({'preemptible:class': 'silver'},
                 "flavor a has the class 'silver', but is not preemptible.")):
            self.flavors.return_value = [
                ('a', specs), ('b', {**spot, 'preemptible:class': 'silver'})]
            self.assert_found('Classes', 'WARNING', text)

    def test_command(self):
        self.set(headroom='VCPU', group='preemption')
        with mock.patch.object(upgradecheck, 'CONF', self.conf), \
                mock.patch('builtins.print') as output:
            self.assertEqual(upgradecheck.Code.FAILURE, self.checks.check())
        self.assertIn('Options', str(output.call_args[0][0]))

    def test_credentials(self):
        self.set(auth_type=None, group='preemption')
        self.assert_found('Options', 'FAILURE', 'auth_type')

    def test_misspelt_extra_specs(self):
        name = 'Extra specs of flavors'
        for specs, text in (
                ({'preemptible:minimum_runtime': '3600'},
                 'is unknown; preemptible:minimum_runtime_s is known.'),
                ({'preemptable:enabled': 'true'},
                 'preemptible:enabled is known.'),
                ({'preemptible:x': '1'}, 'flavor spot is unknown'),
                ({'preemptible:action': 'reboot'}, "'reboot'"),
                ({'preemptible:notice_s': '2m'}, "'2m'"),
                ({f'preemptible:x{number}': '1' for number in range(12)},
                 'and 2 more')):
            self.flavors.return_value = [('spot', specs)]
            self.assert_found(name, 'WARNING', text)
        self.flavors.side_effect = db_exc.DBConnectionError('no')
        self.assert_found(name, 'WARNING', 'cannot be read')

    def test_misspelt_extra_specs_of_watcher(self):
        name = 'Extra specs of flavors'
        self.set(marks=['lifecycle'], group='preemption')
        for specs, text in (
                ({'lifecycle:preemptible': 'true'},
                 'is unknown; lifecycle:preemptable is known.'),
                ({'lifecycle:preemptable': 'maybe'}, "'maybe'"),
                ({'lifecycle:preempt_policy': 'explode'},
                 "preempt_policy of flavor spot has the value 'explode'")):
            self.flavors.return_value = [('spot', specs)]
            with mock.patch('oslo_config.cfg.CONF', self.conf):
                self.assert_found(name, 'WARNING', text)
            self.assertEqual('', status_flavors.fault(*next(
                iter(specs.items()))))

    def test_quotas(self):
        self.set(allocation_project_id='x', group='preemption_quota')
        self.assert_found('Options', 'FAILURE', 'enforce_normal')

    def test_secrets_of_requests(self):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'keys')
        self.set(enabled=True, group='backlog')
        self.assert_found('Secrets of requests', 'WARNING',
                          'secret_key_file is not set')
        self.set(secret_key_file=path, group='backlog')
        self.assert_found('Options', 'FAILURE', 'No such file')
        with open(path, 'w') as stream:
            stream.write('hunter2')
        self.assert_found('Options', 'FAILURE', 'line 1 must be a key')
        with open(path, 'wb') as stream:
            stream.write(fernet.Fernet.generate_key())
        self.assert_nothing_found()

    def test_figures(self):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'f')
        self.set(figures_file=path, group='energy')
        self.assert_found('Figures of hosts', 'WARNING', 'No such file')
        for content, expected in (('a: {watts: many}', "'many'"),
                                  ('a: {watts: 60000}', '60000')):
            with open(path, 'w') as stream:
                stream.write(content)
            self.assert_found('Figures of hosts', 'WARNING', expected)
        with open(path, 'w') as stream:
            stream.write('a: {watts: 6000}')
        self.assert_nothing_found()

    def test_power(self):
        self.set(forecast='fortune', driver='fortune', group='energy')
        self.assert_nothing_found()
        self.set(enabled=True, group='energy')
        for name, good in (('driver', 'command'), ('forecast', 'ewma')):
            self.assert_found('Options', 'FAILURE', "'fortune'")
            self.set(**{name: good}, group='energy')
        self.assert_nothing_found()
        self.set(demand_wait_s=1800, group='energy')
        self.assert_found('Power of hosts', 'WARNING', 'waits end before it')

    def test_tables(self):
        database = db.Database(self.conf)
        with mock.patch.object(db.Database, 'is_sqlite', False):
            self.assert_found('Database', 'FAILURE', 'has no tables')
        schema_upgrade.sync(database)
        self.assert_nothing_found()
        with database.engine.begin() as connection:
            connection.execute(sa.text(
                "UPDATE alembic_version SET version_num = '0017'"))
        self.assert_found('Database', 'FAILURE', 'at revision 0017, which')

    def test_database_away(self):
        with mock.patch.object(schema_upgrade, 'get_revision',
                               side_effect=db_exc.DBConnectionError('no')):
            self.assert_found('Database', 'FAILURE', 'opened')

    def test_one_file_for_several_schedulers(self):
        name = 'Database of several schedulers'
        self.hosts.return_value = {'host2', 'host1'}
        self.assert_found(name, 'WARNING', '(host1, host2)')
        self.hosts.side_effect = db_exc.DBConnectionError('no')
        self.assert_found(name, 'WARNING', 'cannot be read')
        self.hosts.reset_mock()
        self.set(connection='mysql+pymysql://host/x',
                 group='preemption_database')
        with mock.patch.object(status.UpgradeChecks, '_check_database'):
            self.checks._check_schedulers()
        self.hosts.assert_not_called()

    def test_filter(self):
        self.set(enabled_filters=['ComputeFilter'], group='filter_scheduler')
        self.assert_found('Filter', 'WARNING', 'enabled_filters')

    def test_filter_not_available(self):
        self.set(available_filters=['nova.scheduler.filters.all_filters'],
                 group='filter_scheduler')
        self.assert_found('Filter', 'FAILURE', 'available_filters')

    def test_filter_misspelt(self):
        self.set(available_filters=['nova_preempt.filters'],
                 group='filter_scheduler')
        self.assert_found('Filter', 'FAILURE', 'nova_preempt.filters')

    def test_weighers(self):
        self.set(weight_classes=['nova.scheduler.weights.all_weighers'],
                 group='filter_scheduler')
        self.assert_found('Weighers', 'WARNING', 'PreemptionCostWeigher')

    def test_times(self):
        self.set(maximum_notice_s=1561, group='preemption')
        self.assert_found('Options', 'FAILURE', '1800 s')
        self.set(maximum_notice_s=1560, group='preemption')
        self.assert_nothing_found()

    def test_options_of_the_api(self):
        self.set(audit_map_file='/nowhere/x', group='preemption_api')
        self.assert_found('Options', 'FAILURE', '/nowhere/x cannot be used')

    def test_threads_of_the_scheduler_for_waiting_requests(self):
        self.set(max_waiting_requests=64, group='preemption')
        self.assert_found('Requests that wait', 'WARNING', '64')
        self.set(max_waiting_requests=63, group='preemption')
        self.assert_nothing_found()

    def test_threads_of_the_conductor_for_waiting_requests(self):
        """Each worker of the scheduler has the same limit."""
        self.set(workers=4, group='scheduler')
        self.set(workers=2, group='conductor')
        self.assert_found('Requests that wait', 'WARNING',
                          'up to 128 requests')
        self.set(workers=3, group='conductor')
        self.assert_nothing_found()

    def test_lease_service(self):
        tables.make(db.Database(self.conf))
        enabled = ['ComputeFilter', 'PreemptibleFilter', 'ReservationFilter']
        self.set(enabled_filters=enabled, group='filter_scheduler')
        self.assert_nothing_found()
        self.set(lease_service='nobody', group='reservation')
        self.assert_found('Options', 'FAILURE', 'blazar, native')

    def test_reservations_are_off(self):
        tables.make(db.Database(self.conf))
        result = self.checks._check_reservations()
        self.assertIn('users cannot reserve hosts', result.details)
        now = datetime.datetime(2026, 1, 1)
        mine = reservations.Reservations(db.Database(self.conf), lambda: now)
        mine.grant(reservation_model.Reservation(
            'r1', 'p', 1, 60, now, 'shelve', 0),
            lambda calendar: core.FoundWindow(0, 60, ('h1',)))
        self.assert_found('Reservations', 'WARNING', '1 granted reservations')
        mine.update('r1', status=reservation_model.ACTIVE, ready_at=now)
        self.assert_nothing_found()

    def test_permissions_to_reserve(self):
        database = db.Database(self.conf)
        tables.make(database)
        self.set(enabled=True, group='reservation')
        reservable_hosts.set_host(database, 'h1', reservable=True)
        reservable_hosts.set_host(database, 'h2', reservable=False)
        result = self.checks._check_reservations()
        self.assertEqual(upgradecheck.Code.SUCCESS, result.code)
        for text in ('preemption:reservation:create (', 'role:member',
                     'may reserve 1 hosts', 'max_hosts 4',
                     'max_duration_s 604800'):
            self.assertIn(text, result.details)
        self.set(max_hosts=-1, group='reservation')
        self.assert_found('Reservations', 'WARNING',
                          'No limit is set for max_hosts')
        self.set(reservable_default=True, group='reservation')
        self.assert_found('Reservations', 'WARNING',
                          'every host that is not excluded')

    def test_headroom(self):
        self.set(headroom='VCPU:10%,MEMORY_MB', group='preemption')
        self.assert_found('Options', 'FAILURE', "'MEMORY_MB'")


class TestProcess(testtools.TestCase):
    """The command as it is, in an environment that has osprofiler."""

    PROFILER = {
        '__init__': '',
        'opts': (
            'from oslo_config import cfg\n'
            'def set_defaults(conf):\n'
            '    conf.register_opts([cfg.BoolOpt("enabled", default=False),\n'
            '        cfg.BoolOpt("trace_sqlalchemy")], group="profiler")\n'),
        'sqlalchemy': '',
    }

    def test_a_single_host_with_the_defaults(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        package = folder / 'osprofiler'
        package.mkdir()
        for name, text in self.PROFILER.items():
            (package / f'{name}.py').write_text(text)
        (folder / 'nova.conf').write_text(
            f'[DEFAULT]\nstate_path = {folder}\n'
            f'transport_url = fake:/\n'
            f'[database]\nconnection = sqlite:///{folder}/nova.sqlite\n'
            f'[api_database]\nconnection = sqlite:///{folder}/api.sqlite\n')
        done = subprocess.run(
            [sys.executable, '-m', 'nova_preempt.cmd.status',
             '--config-file', str(folder / 'nova.conf'), 'upgrade', 'check'],
            capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, 'PYTHONPATH': str(folder)})
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn('no such table: cell_mappings', done.stdout)
        self.assertNotIn('NoSuchOptError', done.stdout + done.stderr)
