# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage against a whole cloud."""

import contextlib
import datetime
import io
import json
import os
import subprocess
import sys
from unittest import mock

import fixtures
from nova import context as nova_context
from nova import objects
from oslo_db import exception as db_exc
import sqlalchemy as sa
import testtools

from nova_preempt import db
from nova_preempt.cloud import placement_api
from nova_preempt.cmd import manage
from nova_preempt.cmd import status
from nova_preempt.db import decisions as db_decisions
from nova_preempt.db import models
from nova_preempt.db import preemptible_hints
from tests import processes
from tests.functional import base

NOBODY = '11111111-1111-4111-8111-111111111111'


def said(decisions, servers, verb='were'):
    """Return the exit status and output of a purge without reservations."""
    out = (f'{decisions} decisions, 0 reservations, 0 requests and '
           f'{servers} servers {verb} deleted.\n')
    return 0, out, ''


#: What verify says where there is nothing to say.
AGREES = 'Servers, allocations, decisions and requests agree.\n'

class ManageTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        # Nova's fixtures have read the options and opened the databases.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_preempt.cloud.nova_conf.read', mock.Mock()))
        self.add_hosts('host1')

    def manage(self, *argv):
        """(status, output, complaints) of a command."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = manage.main(list(argv))
        return status, out.getvalue(), err.getvalue()

    def age(self, uuid, **delta):
        """Make a decision look older than it is."""
        with self.db.writer() as session:
            row = session.get(models.Decision, uuid)
            for name in ('created_at', 'updated_at'):
                setattr(row, name, getattr(row, name)
                        - datetime.timedelta(**delta))

    def allocate(self, uuid, host, **resources):
        self.scheduler.preemption.clients.placement.post_allocations([
            placement_api.Consumer(
                uuid, {self.providers()[host]: {'resources': resources}},
                None, 'project', 'user')])


class TestVerify(ManageTestCase):

    def verify(self, *argv):
        return self.manage('verify', '--wait', '0', *argv)

    def assert_found(self, kind, uuid, name=None):
        status, out, err = self.verify()
        self.assertEqual((1, ''), (status, err))
        line, = out.splitlines()
        self.assertTrue(line.startswith(f'{kind}: '), line)
        self.assertIn(name or uuid, line)
        status, out, _err = self.verify('--json')
        self.assertEqual(1, status)
        problem = json.loads(out)
        self.assertEqual((kind, uuid), (problem['kind'], problem['uuid']))

    def assert_clean(self):
        self.assertEqual((0, AGREES, ''), self.verify())

    def test_each_kind_of_problem_is_found(self):
        cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        self.boot_normal()
        self.wait_gone(cheap)
        self.add_hosts('host2')
        server = self.boot_spot('c', 'host2')
        self.wait_consistent()
        self.assert_clean()
        self.over_soon(server)
        self.cannot_tell()
        self.without_allocation(server)
        self.disabled_cell()
        self.tables_are_old()

    def over_soon(self, server):
        placement = self.scheduler.preemption.clients.placement
        consumer = placement.get_consumer(server)
        placement.delete_allocations(server)

        def repair(_wait_s):
            placement.post_allocations([placement_api.Consumer(
                server, consumer.allocations, None, consumer.project_id,
                consumer.user_id)])

        with mock.patch('nova_preempt.cmd.verify_consistency.time') as time:
            time.sleep.side_effect = repair
            self.assert_clean()

    def assert_cannot_tell(self, reason):
        self.assertEqual(
            (2, '', f'nova-preempt-manage: the command failed: {reason}\n'),
            self.verify())

    def cannot_tell(self):
        with mock.patch.object(
                placement_api.Placement, '_call',
                side_effect=placement_api.PlacementError('GET /x: no\nmore')):
            self.assert_cannot_tell('GET /x: no')
        with mock.patch.object(objects.InstanceList, 'get_by_filters',
                               side_effect=db_exc.DBConnectionError('gone')):
            self.assert_cannot_tell('gone')

    def without_allocation(self, server):
        placement = self.scheduler.preemption.clients.placement
        consumer = placement.get_consumer(server)
        placement.delete_allocations(server)
        self.assert_found('server_without_allocation', server)
        self.allocate(NOBODY, 'host2', VCPU=1)
        placement.post_allocations([placement_api.Consumer(
            server, consumer.allocations, None, consumer.project_id,
            consumer.user_id)])
        self.assert_found('allocation_without_server', NOBODY)
        placement.delete_allocations(NOBODY)
        self.ended_migration(placement)

    def ended_migration(self, placement):
        """Check the allocation of a migration whose server was deleted."""
        self.add_hosts('host3')
        server = self.boot_normal(host='host3')['id']
        with self.cell_context() as context:
            migration = objects.Migration(
                context, instance_uuid=server, status='failed',
                migration_type='live-migration', source_compute='host3',
                source_node='host3')
            migration.create()
        self.allocate(migration.uuid, 'host3', DISK_GB=1)
        self.assert_clean()
        self.delete(server)
        self.assert_found('allocation_of_ended_migration', migration.uuid,
                          server)
        status, out, _err = self.verify(
            '--without', 'allocation_of_ended_migration')
        self.assertEqual((0, AGREES), (status, out))
        placement.delete_allocations(migration.uuid)

    def disabled_cell(self):
        """Check that servers of a disabled cell exist."""
        cell = self.cell_mappings['cell1']
        cell.disabled = True
        cell.save()
        self.assert_clean()
        cell.disabled = False
        cell.save()

    def tables_are_old(self):
        engine = self.db.engine
        with engine.begin() as connection:
            connection.execute(sa.text(
                "UPDATE alembic_version SET version_num = '0001'"))
        status, _out, err = self.verify()
        self.assertEqual(2, status)
        self.assertIn('is at revision 0001, which this version does not', err)

    def test_over_capacity(self):
        server = self.boot_spot('a', 'host1', flavor=self.create_flavor(
            'large', 2, 1024, 10, preemptible=True))
        provider = self.providers()['host1']
        inventory = self._get_provider_inventory(provider)['VCPU']
        state = self.scheduler.preemption.clients.placement.get_provider_state(
            provider)
        self.placement.put(
            f'/resource_providers/{provider}/inventories/VCPU',
            {**inventory, 'total': 1, 'max_unit': 1,
             'resource_provider_generation': state.generation})
        self.assert_found('over_capacity', provider, 'host1')
        self.assertIn(server, self.alive())

    def test_open_decision(self):
        self.decisions.create_decision(db.Decision('d1', 's1', 'dead/1'))
        self.assert_clean()
        self.age('d1', hours=1)
        self.assert_found('open_decision', 'd1')

    def test_victim_of_two_decisions(self):
        for uuid, victim in (('d1', 'a'), ('d2', 'b')):
            self.decisions.create_decision(db.Decision(
                uuid, f's{uuid}', 'h', victims=[db.Victim(victim, 'host1')]))
        self.assert_clean()
        # Our database refuses that, but not to whoever writes its tables.
        with self.db.writer() as session:
            session.execute(sa.update(models.Victim).where(
                models.Victim.server_uuid == 'b').values(server_uuid='a'))
        text = 'victims_end_once: a is a victim of 2 open decisions'
        self.assertEqual((1, f'broken_invariant: {text}\n', ''),
                         self.verify())


class TestPurge(ManageTestCase):

    def setUp(self):
        super().setUp()
        self.flags(marks=['hint'], group='preemption')
        self.restart_scheduler()
        self.cheap = self.boot_hinted('a', 100)
        self.other = self.boot_hinted('b', 1000)
        self.boot_normal()
        self.wait_gone(self.cheap)
        self.uuid = self.last_decision().uuid

    def boot_hinted(self, name, uptime_s):
        server = self.boot(name, self.small, host='host1',
                           hints={'preemptible': 'true'})
        self.wait(server)
        self.set_uptime(server, uptime_s, self.now)
        return server

    def test_purge(self):
        self.assertEqual({self.cheap, self.other},
                         preemptible_hints.get(self.db))
        self.assertEqual(
            said(0, 0), self.manage('db', 'purge', '--days', '1'))
        self.assertEqual(
            said(1, 1, 'would be'),
            self.manage('db', 'purge', '--days', '0', '--dry-run'))
        self.assertEqual(
            said(1, 1), self.manage('db', 'purge', '--days', '0'))
        self.assertEqual([], self.decisions.get_decisions())
        self.assertEqual({self.other}, preemptible_hints.get(self.db))
        # One that is being built keeps its mark.
        objects.InstanceMapping(
            nova_context.get_admin_context(), instance_uuid=NOBODY,
            project_id='project', cell_mapping=None).create()
        preemptible_hints.add(self.db, [NOBODY])
        self.manage('db', 'purge', '--days', '0')
        self.assertEqual({NOBODY, self.other}, preemptible_hints.get(self.db))

    def test_archive(self):
        # A victim's times are in the record.
        _status, out, _err = self.manage('decision', 'show')
        victim, = json.loads(out)['victims']
        self.assertRegex(victim['ended_at'], r'^\d{4}-\d\d-\d\dT.*Z$')
        self.assert_what_is_not_written_stays()
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'f')
        with open(path, 'w') as file:
            file.write('{"cut o')
        self.assertEqual(
            said(1, 1),
            self.manage('db', 'archive', '--days', '0', '--file', path))
        with open(path) as file:
            cut, decision, server = file.read().splitlines()
        self.assertEqual('{"cut o', cut)
        decision = json.loads(decision)
        self.assertEqual(('decisions', self.uuid, db_decisions.DONE),
                         (decision['table'], decision['uuid'],
                          decision['status']))
        self.assertEqual([self.cheap], [victim['server_uuid'] for victim
                                        in decision['victims']])
        server = json.loads(server)
        self.assertEqual(('preemptible_servers', self.cheap),
                         (server['table'], server['uuid']))
        self.assertEqual([], self.decisions.get_decisions())

    def assert_what_is_not_written_stays(self):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'f')
        with mock.patch('os.fsync', side_effect=[None, OSError('full')]):
            status, out, err = self.manage('db', 'archive', '--days', '0',
                                           '--file', path)
        self.assertEqual(
            (2, '', 'nova-preempt-manage: the command failed: full\n'),
            (status, out, err))
        self.assertEqual(1, len(self.decisions.get_decisions()))


class TestStatus(base.PreemptionTestCase):

    def test_hosts_of_schedulers(self):
        # Nova's fixtures have opened the databases.
        for name in ('rpc.init', 'db.api.api.configure',
                     'db.main.api.configure'):
            self.useFixture(fixtures.MonkeyPatch(f'nova.{name}', mock.Mock()))
        host = self.scheduler_service.host
        self.assertEqual({host}, status._scheduler_hosts())
        with self.cell_context() as context:
            objects.Service(context, host='other', binary='nova-scheduler',
                            topic='scheduler').create()
        self.assertEqual({host, 'other'}, status._scheduler_hosts())


class TestProcess(testtools.TestCase):
    """The commands as they are, on empty databases of Nova's."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.conf = os.path.join(self.folder, 'nova.conf')
        with open(self.conf, 'w') as file:
            file.write(f"""
[DEFAULT]
state_path = {self.folder}
transport_url = fake:/
[api_database]
connection = sqlite:///{self.folder}/api.sqlite
[database]
connection = sqlite:///{self.folder}/cell1.sqlite
[placement]
auth_type = none
endpoint_override = http://127.0.0.1:1
""")

    def call(self, module, *argv):
        return processes.run_main(module, '--config-file', self.conf, *argv)

    def manage(self, *argv):
        return self.call('nova_preempt.cmd.manage', *argv)

    def test_commands(self):
        for argv in (['api_db', 'sync'], ['db', 'sync', '--local_cell'],
                     ['cell_v2', 'create_cell', '--name', 'cell1']):
            status, _out, err = self.call('nova.cmd.manage', *argv)
            self.assertEqual(0, status, err)
        status, _out, err = self.manage('db', 'sync')
        self.assertEqual(0, status, err)
        done = self.start('purge', '--days', '0')
        self.assertEqual('0 decisions, 0 reservations, 0 requests and '
                         '0 servers were deleted.\n', done.stdout, done.stderr)
        status, _out, err = self.manage('verify', '--wait', '0')
        self.assertEqual(2, status, err)
        self.assertIn('nova-preempt-manage: the command failed: ', err)
        status, out, err = self.call('nova_preempt.cmd.status', 'upgrade',
                                     'check', '--json')
        self.assertEqual(2, status, err)
        self.assertEqual(
            {'Options': 2, 'Filter': 1, 'Weighers': 1},
            {check['check']: check['result']
             for check in json.loads(out)['checks'] if check['result']})

    def start(self, *argv):
        """The program as it is installed."""
        return subprocess.run(
            [os.path.join(os.path.dirname(sys.executable),
                          'nova-preempt-manage'),
             '--config-file', self.conf, 'db', *argv],
            capture_output=True, text=True, check=False, timeout=300)
