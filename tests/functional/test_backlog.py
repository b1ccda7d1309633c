# SPDX-License-Identifier: Apache-2.0
"""The backlog: requests that start in the name of users when there is room."""

import contextlib
import datetime
import threading
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova.conf import CONF
from nova.tests.functional.api import client
from oslo_utils import uuidutils

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model

# Nova's fixtures do not let numpy be imported any more.
from nova_preempt.core.classes import promethee  # noqa: F401 (see above)
from nova_preempt.core.reservation import calendar as core_calendar
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import backlog_store
from nova_preempt.db import pauses
from nova_preempt.db import reservations
from nova_preempt.embedded import embedded_cloud
from nova_preempt.reservation import lease_cache
from tests.functional import base

PROJECT = '5a1e7d0c4b8f49d2a63c0e9f17d2b845'
USER = 'c0ffee00c0ffee00c0ffee00c0ffee00'


class BacklogTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.flags(group='backlog', enabled=True)
        self.add_hosts('host1')
        self.engine = self.start_engine()

    def leave(self, flavor=None, count=1, **values):
        """Leave a request, and return its uuid."""
        uuid = uuidutils.generate_uuid()
        flavor = self.api.get_flavor(flavor or self.small)
        at = self.at()
        backlog_store.create(self.db, backlog_model.Request(**{
            'uuid': uuid, 'project_id': PROJECT, 'user_id': USER,
            'trust_id': self.trusts.create('', PROJECT, USER, ['member']),
            'body': {'server': {
                'name': 'batch', 'imageRef': embedded_cloud.IMAGE,
                'networks': 'none'}},
            'compute_version': '2.90', 'count': count, 'least_count': count,
            'alternatives': (backlog_model.Alternative(
                flavor['id'], flavor['name'],
                {'VCPU': flavor['vcpus'], 'MEMORY_MB': flavor['ram'],
                 'DISK_GB': flavor['disk']},
                flavor['name'] == 'spot'),),
            'created_at': at, 'updated_at': at, 'waits_since': at, **values}))
        return uuid

    def at(self):
        return self.now.replace(tzinfo=None)

    def pass_time(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def get(self, uuid):
        return backlog_store.get(self.db, uuid)

    def step(self, engine=None):
        (engine or self.engine).backlog.step()

    def step_until(self, uuid, *states):
        """Run passes until a condition holds; return the request."""
        def reached():
            self.step()
            found = self.get(uuid)
            return found if found.state in states else None

        try:
            return self.wait_for(reached, f'it to be {" or ".join(states)}')
        except embedded_cloud.CloudError as exc:
            raise embedded_cloud.CloudError(
                f'{exc}: {self.get(uuid)}') from exc

    def servers_of(self, uuid):
        """The servers in Nova with a tag of the request."""
        return [server for server in self.servers_with_tags()
                if any(tag.startswith(f'backlog:{uuid}:')
                       for tag in server['tags'])]

    def servers_with_tags(self):
        found = []
        for server in self.servers():
            # It may be deleted while the others are read.
            with contextlib.suppress(
                    client.OpenStackApiNotFoundException):
                found.append(self.with_tags(server['id']))
        return found

    def with_tags(self, uuid):
        self.api.microversion, before = '2.90', self.api.microversion
        try:
            return self.api.get_server(uuid)
        finally:
            self.api.microversion = before


class TestLadders(BacklogTestCase):
    """Cores by idle cores, copies on distinct hosts of their category."""

    HIGH = 'CUSTOM_REPUTATION_HIGH'

    def setUp(self):
        super().setUp()
        self.flags(group='backlog', ladders=True, order='promethee')
        self.add_hosts('host2', 'host3')
        for name in ('host1', 'host3'):
            self._set_traits(name)
        self.engine = self.start_engine()

    def _set_traits(self, host):
        uuid = self.providers()[host]
        self._create_trait(self.HIGH)
        self._set_provider_traits(uuid, [
            *self._get_provider_traits(uuid), self.HIGH])

    def test_copies_and_cores(self):
        rungs = tuple(backlog_model.Alternative(
            self.create_flavor(f'web{cores}', cores, 512, 5, **{
                'preemptible:ladder': 'web', f'trait:{self.HIGH}':
                'required'}),
            f'web{cores}', {'VCPU': cores, 'MEMORY_MB': 512, 'DISK_GB': 5},
            required=(self.HIGH,)) for cores in (2, 1))
        priorities = backlog_model.SlaPriorities(3, 3, 3, 2)
        uuid = self.leave(alternatives=rungs, ladder='web', apart=True,
                          priorities=priorities, count=2)
        found = self.step_until(uuid, backlog_model.ACTIVE)
        shown = [self.with_tags(server.uuid) for server in found.servers]
        self.assertEqual({'host1', 'host3'}, {
            server['OS-EXT-SRV-ATTR:host'] for server in shown})
        self.assertEqual({2}, {server['flavor']['vcpus']
                               for server in shown})
        # What is left is too little for another pair.
        other = self.leave(alternatives=rungs, ladder='web', apart=True,
                           priorities=priorities, count=2)
        self.step()
        self.assertEqual('room', self.get(other).waits_for['code'])
        groups = self.api.api_get(
            '/os-server-groups?all_projects=True').body['server_groups']
        self.assertEqual([f'backlog:{uuid}'],
                         [group['name'] for group in groups])
        for server in shown:
            self.delete(server['id'])
        self.step()
        self.assertEqual(backlog_model.DONE, self.get(uuid).state)
        self.assertEqual([], [group for group in self.api.api_get(
            '/os-server-groups?all_projects=True').body['server_groups']
            if group['name'] == f'backlog:{uuid}'])


class Killed(BaseException):
    """Stands for the end of the process by SIGKILL."""


class TestLife(BacklogTestCase):

    def test_a_request_from_waiting_to_its_end(self):
        uuid = self.leave()
        found = self.step_until(uuid, backlog_model.ACTIVE)
        server, = found.servers
        shown = self.with_tags(server.uuid)
        self.assertEqual(
            ('ACTIVE', PROJECT, USER, [f'backlog:{uuid}:1']),
            (shown['status'], shown['tenant_id'], shown['user_id'],
             shown['tags']))
        self.delete(server.uuid)
        self.step()
        found = self.get(uuid)
        self.assertEqual(backlog_model.DONE, found.state)
        # And with it its trust.
        self.assertEqual(('', {}), (found.trust_id, self.trusts.made))
        self.assertEqual(
            [backlog_model.WAITING, backlog_model.PLACING,
             backlog_model.ACTIVE, backlog_model.DONE],
            [item.state for item in backlog_store.history(self.db, uuid)])
        for check in (self.check_no_host, self.check_no_quota,
                      self.check_refused, self.check_flavor_deleted,
                      self.check_cancelled_without_a_role,
                      self.check_left, self.check_locked,
                      self.check_all_or_none,
                      self.check_expired, self.check_cancelled,
                      self.check_paused, self.check_away, self.check_gone):
            check()
            self.assertEqual({}, self.trusts.made, check.__name__)
            self.assertEqual([], self.servers(), check.__name__)
        self.wait_consistent()

    def end(self, uuid):
        """Delete its servers, and see that it is done."""
        for server in self.get(uuid).servers:
            self.delete(server.uuid)
        self.step_until(uuid, backlog_model.DONE)

    def cancel(self, uuid, **values):
        self.assertTrue(backlog_store.change(
            self.db, uuid, backlog_model.OPEN, self.at(),
            state=backlog_model.CANCELLED, **values))

    def clear_up(self):
        """Run passes until nothing has to be cleaned up."""
        def clear():
            self.step()
            return not self.trusts.made

        self.wait_for(clear, 'trusts to be deleted')

    def check_no_host(self):
        """Placement has room, and the scheduler finds none all the same."""
        huge = self.create_flavor('huge', 64, 1024, 10)
        uuid = self.leave(huge, alternatives=(
            backlog_model.Alternative(huge, 'huge', {'VCPU': 1}),))
        self.step()
        found = self.step_until(uuid, backlog_model.WAITING)
        self.assertEqual(
            ('no_valid_host', 1), (found.waits_for['code'], found.tries))
        self.wait_for(lambda: not self.step() and not self.servers(),
                      'what failed to be deleted')
        self.step()
        found = self.get(uuid)
        self.assertEqual(((), 1), (found.servers, len(found.boots)))
        self.pass_time(30)
        self.step()
        self.assertEqual(2, len(self.get(uuid).boots))
        # Cancelled as it is built, it leaves nothing.
        self.cancel(uuid)
        self.clear_up()
        self.wait_for(lambda: not self.servers(), 'servers to be deleted')

    def check_no_quota(self):
        self.flags(group='quota', instances=0)
        uuid = self.leave()
        self.step()
        found = self.get(uuid)
        self.assertEqual((backlog_model.WAITING, 'quota'),
                         (found.state, found.waits_for['code']))
        self.assertIn('Quota exceeded', found.waits_for['text'])
        self.flags(group='quota', instances=-1)
        self.pass_time(30)
        self.step_until(uuid, backlog_model.ACTIVE)
        self.end(uuid)

    def check_refused(self):
        uuid = self.leave(body={'server': {
            'name': 'x', 'imageRef': uuidutils.generate_uuid(),
            'networks': 'none'}})
        self.step()
        found = self.get(uuid)
        self.assertEqual(backlog_model.FAILED, found.state)
        self.assertEqual('Can not find requested image', found.reason)
        self.clear_up()

    def check_cancelled_without_a_role(self):
        """The servers are deleted all the same, as the user has asked."""
        uuid = self.leave()
        self.step_until(uuid, backlog_model.ACTIVE)
        self.cancel(uuid, ends_servers=True)
        self.trusts.gone[f'{USER}:{PROJECT}'] = 'User has no access.'
        self.clear_up()
        self.trusts.gone.clear()
        self.wait_for(lambda: not self.servers(), 'it to be deleted')
        self.assertEqual('', self.get(uuid).reason)

    def check_left(self):
        """Check requests whose servers Nova lets no user delete."""
        uuid = self.leave()
        server, = self.step_until(uuid, backlog_model.ACTIVE).servers
        self.cancel(uuid, ends_servers=True)
        self.trusts.gone[f'{USER}:{PROJECT}'] = 'User has no access.'
        with mock.patch.object(
                nova_api.NovaAPI, 'delete', mock.Mock(
                    side_effect=nova_api.NotAllowed('policy'))) as asked:
            self.clear_up()
            self.step()
        self.trusts.gone.clear()
        self.assertEqual(1, asked.call_count)
        found = self.get(uuid)
        self.assertEqual(backlog_model.CANCELLED, found.state)
        self.assertIn(f'Its servers {server.uuid} are left', found.reason)
        self.delete(server.uuid)

    def check_locked(self):
        """Check a server that its owner has locked and cannot delete."""
        uuid = self.leave()
        server, = self.step_until(uuid, backlog_model.ACTIVE).servers
        self.act(server.uuid, 'lock')
        self.cancel(uuid, ends_servers=True)
        self.clear_up()
        self.assertIn(f'Its servers {server.uuid} are left',
                      self.get(uuid).reason)
        self.act(server.uuid, 'unlock')
        self.delete(server.uuid)

    def check_flavor_deleted(self):
        """Check that it uses the other flavor, and is refused without any."""
        def flavor(name):
            return backlog_model.Alternative(
                self.create_flavor(name, 1, 1024, 10), name,
                {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10})

        flavors = flavor('first'), flavor('second')
        self.admin_api.api_delete(f'/flavors/{flavors[0].flavor_id}')
        uuid = self.leave(alternatives=flavors)
        self.step()
        self.assertEqual(
            (backlog_model.WAITING, ['second']), (self.get(uuid).state, [
                item.name for item in self.get(uuid).alternatives]))
        self.step_until(uuid, backlog_model.ACTIVE)
        self.end(uuid)
        uuid = self.leave(alternatives=flavors[:1])
        self.step()
        self.assertEqual(backlog_model.FAILED, self.get(uuid).state)
        self.clear_up()

    def check_all_or_none(self):
        """Two of three would fit; and two start with one call."""
        none = self.leave(count=3)
        found = self.leave(count=3, least_count=2)
        self.step_until(found, backlog_model.PARTLY_ACTIVE)
        self.assertEqual(2, len(self.get(found).servers))
        self.assertEqual(1, len(self.get(found).boots))
        self.assertEqual(backlog_model.WAITING, self.get(none).state)
        self.cancel(none)
        self.cancel(found, ends_servers=True)
        self.clear_up()

    def check_expired(self):
        uuid = self.leave(longest_wait_s=60,
                          not_before=self.at() + datetime.timedelta(1))
        self.step()
        self.assertEqual('window', self.get(uuid).waits_for['code'])
        self.pass_time(60)
        self.step()
        self.assertEqual(backlog_model.EXPIRED, self.get(uuid).state)

    def check_cancelled(self):
        """Check that running servers stay."""
        uuid = self.leave()
        server, = self.step_until(uuid, backlog_model.ACTIVE).servers
        self.cancel(uuid)
        self.clear_up()
        self.assertEqual('ACTIVE', self.api.get_server(server.uuid)['status'])
        self.delete(server.uuid)

    def check_paused(self):
        pauses.pause(self.db, pauses.BACKLOG, 'a fire')
        self.engine.parts.process.pauses._read_at = None
        uuid = self.leave()
        self.step()
        self.assertEqual(backlog_model.WAITING, self.get(uuid).state)
        pauses.resume(self.db, pauses.BACKLOG)
        self.engine.parts.process.pauses._read_at = None
        self.step_until(uuid, backlog_model.ACTIVE)
        self.end(uuid)

    def check_away(self):
        """Check that no request is lost while a service is down."""
        uuid = self.leave()
        self.trusts.away = 'Keystone is away'
        self.step()
        self.assertEqual((backlog_model.WAITING, ()), (
            self.get(uuid).state, self.get(uuid).boots))
        self.trusts.away = ''
        with mock.patch.object(
                nova_as_user.UserNova, '_call',
                side_effect=ks_exc.ConnectFailure('Nova is away')):
            self.step()
        found = self.get(uuid)
        self.assertEqual((backlog_model.PLACING, [backlog_model.ASKING]), (
            found.state, [item.state for item in found.boots]))
        # Until it is certain that nothing has arrived.
        self.pass_time(180)
        self.step()
        self.assertEqual(backlog_model.PLACING, self.get(uuid).state)
        self.pass_time(1)
        self.step()
        self.pass_time(30)
        found = self.step_until(uuid, backlog_model.ACTIVE)
        self.assertEqual([backlog_model.LOST, backlog_model.SETTLED],
                         [item.state for item in found.boots])
        self.trusts.away = 'Keystone is away'
        self.cancel(uuid)
        self.step()
        self.assertTrue(self.get(uuid).trust_id)
        self.trusts.away = ''
        self.clear_up()
        self.delete(found.servers[0].uuid)

    def check_gone(self):
        """The role of the user is taken away while the request waits."""
        uuid = self.leave()
        self.trusts.gone[f'{USER}:{PROJECT}'] = 'User has no access.'
        self.step()
        found = self.get(uuid)
        self.assertEqual((backlog_model.FAILED, 'User has no access.'),
                         (found.state, found.reason))
        self.step()
        self.trusts.gone.clear()


def kill(function, after):
    """Die as this is called, or as it returns."""
    def killed(*args, **kwargs):
        if after:
            function(*args, **kwargs)
        raise Killed

    return killed


class TestCancelled(BacklogTestCase):

    def test_during_the_notice_of_victims(self):
        """The engine deletes the servers being built afterwards."""
        self.flags(maximum_notice_s=100, group='preemption')
        told = self.boot_spot('told', 'host1', flavor=self.create_flavor(
            'told', 2, 2048, 20, preemptible=True,
            **{'preemptible:notice_s': '100'}))

        def is_told():
            return nova_api.NOTICE_KEY in self.api.get_server(told)[
                'metadata']

        uuid = self.leave()
        found = self.step_until(uuid, backlog_model.PLACING)
        self.wait_for(is_told, 'the notice')
        self.assertTrue(backlog_store.change(
            self.db, uuid, (found.state,), self.at(),
            state=backlog_model.CANCELLED))
        self.wait_for(lambda: not is_told(), 'the notice to be withdrawn')
        self.wait(told)
        self.step()
        self.wait_for(lambda: not self.servers_of(uuid),
                      'what was on its way to be deleted')


class TestCrashes(BacklogTestCase):

    def test_killed_at_each_step(self):
        """No server is created twice, and none is left behind."""
        for place, name in ((backlog_store, 'begin_boot'),
                            (nova_as_user.UserNova, 'create'),
                            (backlog_store, 'record')):
            for after in (False, True):
                self.check_killed(place, name, after)
        self.wait_consistent()

    def check_killed(self, place, name, after):
        uuid = self.leave()
        with mock.patch.object(place, name,
                               kill(getattr(place, name), after)):
            self.assertRaises(Killed, self.step)
        self.engine = self.start_engine()
        self.recover(uuid)
        self.assertEqual(1, len(self.servers()), (name, after))
        found = self.get(uuid)
        self.assertEqual([self.servers()[0]['id']],
                         [item.uuid for item in found.servers])
        asked = after or name != 'begin_boot'
        self.assertEqual(
            # What had not reached Nova was given up in time.
            2 if (name, after) in (('begin_boot', True), ('create', False))
            else 1, len(found.boots), (name, after, asked))
        self.delete(found.servers[0].uuid)
        self.step_until(uuid, backlog_model.DONE)

    def recover(self, uuid):
        def active():
            self.step()
            self.pass_time(20)
            return self.get(uuid).state == backlog_model.ACTIVE

        self.wait_for(active, 'the request to be active')

    def test_two_engines_at_once(self):
        other = self.start_engine()
        uuids = [self.leave() for _ in range(2)]
        both = threading.Barrier(2)

        def run(engine):
            both.wait()
            self.step(engine)

        threads = [threading.Thread(target=run, args=(engine,))
                   for engine in (self.engine, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for uuid in uuids:
            self.recover(uuid)
        self.assertEqual(
            {(item.uuid,) for item in self.get(uuids[0]).servers}
            | {(item.uuid,) for item in self.get(uuids[1]).servers},
            {(server['id'],) for server in self.servers()})
        self.assertEqual(2, len(self.servers()))

    def test_an_engine_that_stood_still_calls_nova_too_late(self):
        """Its servers are deleted, as another engine abandoned the boot."""
        uuid = self.leave()
        real = nova_as_user.UserNova.create

        def stand_still(nova, body, version):
            self.pass_time(181)
            self.engine, late = self.start_engine(), self.engine
            with mock.patch.object(nova_as_user.UserNova, 'create', real):
                self.recover(uuid)
            self.engine = late
            return real(nova, body, version)

        with mock.patch.object(nova_as_user.UserNova, 'create', stand_still):
            self.step()
        self.assertEqual(2, len(self.servers()))
        self.wait_for(lambda: not self.step() and len(self.servers()) == 1,
                      'the late one to be deleted')
        found = self.get(uuid)
        self.assertEqual(
            (backlog_model.ACTIVE, [self.servers()[0]['id']]),
            (found.state, [item.uuid for item in found.servers]))


class TestKept(BacklogTestCase):

    def test_no_hosts_are_kept_without_quota(self):
        """They are kept once the quota suffices."""
        self.flags(group='backlog', hold_after_s=0)
        self.flags(group='quota', cores=1)
        normal = self.boot_normal(flavor=self.small)['id']
        uuid = self.leave(self.big)
        self.step()
        self.step()
        self.assertIn('quota of its project has', self.get(
            uuid).waits_for['text'])
        self.flags(group='quota', cores=-1)
        self.engine.backlog._loop._cloud.quotas._known.clear()
        self.step()
        self.step()
        self.assertEqual(1, self.get(uuid).waits_for['kept']['hosts'])
        self.delete(normal)
        self.step_until(uuid, backlog_model.ACTIVE)


class TestGaveWay(BacklogTestCase):

    def test_deleted_and_shelved_servers_come_back(self):
        """Servers that come back by each action, and others."""
        shelved = self.create_flavor(
            'shelved', 1, 1024, 10, preemptible=True,
            **{'preemptible:action': 'shelve', 'preemptible:restore': 'true'})
        size = {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10}
        back = self.leave(self.spot, comes_back=True, most_returns=1)
        kept = self.leave(shelved, alternatives=(backlog_model.Alternative(
            shelved, 'shelved', size, preemptible=True),))
        for uuid in (back, kept):
            self.step_until(uuid, backlog_model.ACTIVE)
        first = self.get(back).servers[0].uuid
        away = self.get(kept).servers[0].uuid
        normal = self.boot_normal(flavor=self.big)['id']
        self.step_until(back, backlog_model.EVICTED)
        found = self.step_until(kept, backlog_model.EVICTED)
        self.assertEqual([(away, backlog_model.AWAY)], [
            (item.uuid, item.state) for item in found.servers])
        self.step()
        self.assertEqual('room', self.get(back).waits_for['code'])
        self.delete(normal)
        found = self.step_until(back, backlog_model.ACTIVE)
        self.assertEqual(
            [(first, backlog_model.ENDED),
             (found.servers[1].uuid, backlog_model.RUNNING)],
            [(item.uuid, item.state) for item in found.servers])
        self.engine.run_once()
        self.wait(away)
        self.step_until(kept, backlog_model.ACTIVE)
        # Nobody comes back for ever.
        self.boot_normal(flavor=self.big)
        found = self.step_until(back, backlog_model.EXPIRED)
        self.assertEqual('It has waited again 1 times.', found.reason)


    def test_shelved_where_the_flavor_does_not_bring_it_back(self):
        """The request does."""
        shelved = self.create_flavor(
            'shelved', 1, 1024, 10, preemptible=True,
            **{'preemptible:action': 'shelve'})
        uuid = self.leave(shelved, comes_back=True, alternatives=(
            backlog_model.Alternative(
                shelved, 'shelved',
                {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10},
                preemptible=True),))
        server = self.step_until(uuid, backlog_model.ACTIVE).servers[0].uuid
        normal = self.boot_normal(flavor=self.big)['id']
        found = self.step_until(uuid, backlog_model.EVICTED)
        self.assertEqual((None, {}), (found.position, found.waits_for))
        self.delete(normal)
        self.engine.run_once()
        self.wait(server)
        found = self.step_until(uuid, backlog_model.ACTIVE)
        self.assertEqual([(server, backlog_model.RUNNING)], [
            (item.uuid, item.state) for item in found.servers])


class TestReservedHosts(BacklogTestCase):

    HOUR_S = 3600

    def setUp(self):
        super().setUp()
        self.flags(group='filter_scheduler', enabled_filters=[
            *CONF.filter_scheduler.enabled_filters, 'ReservationFilter'])
        # Nobody waits for the background.
        for name in ('REFRESH_S', 'MAX_AGE_S'):
            self.useFixture(fixtures.MockPatchObject(
                lease_cache, name, self.HOUR_S))
        self.restart_scheduler()
        self.add_hosts('host2')
        self.engine = self.start_engine()
        self.reservations = reservations.Reservations(self.db, self.at)

    def reserve(self, host, start_s):
        start_s += int(self.now.timestamp())
        found = self.reservations.grant(
            reservation_model.Reservation(
                uuidutils.generate_uuid(), PROJECT, 1, self.HOUR_S,
                self.at(), 'shelve', 60),
            lambda calendar: core_calendar.FoundWindow(
                start_s, start_s + self.HOUR_S, (host,)))
        lease_cache.current(CONF).refresh()
        return found.uuid

    def activate(self, uuid):
        self.reservations.update(uuid, status=reservation_model.ACTIVE)
        lease_cache.current(CONF).refresh()

    def test_reserved_hosts_are_used_with_the_hint_only(self):
        soon = self.reserve('host1', 600)
        hint = {'os:scheduler_hints': {'reservation': soon}, 'server': {
            'name': 'mine', 'imageRef': embedded_cloud.IMAGE,
            'networks': 'none'}}
        mine = self.leave(body=hint)
        early = self.leave(self.big)
        self.step_until(early, backlog_model.ACTIVE)
        # There is no room but what is reserved, or soon will be.
        self.pass_time(600 - CONF.reservation.guard_s)
        late = self.leave(self.big)
        self.step()
        self.assertEqual(
            [('reservation', 0), ('room', 0)],
            [(self.get(uuid).waits_for['code'], len(self.get(uuid).boots))
             for uuid in (mine, late)])
        self.pass_time(CONF.reservation.guard_s)
        self.activate(soon)
        found = self.step_until(mine, backlog_model.ACTIVE)
        self.assertEqual('host1', self.with_tags(found.servers[0].uuid)[
            'OS-EXT-SRV-ATTR:host'])
        # Nova was never asked in vain.
        self.assertEqual([1, 0], [len(self.get(uuid).boots)
                                  for uuid in (mine, late)])


class TestMany(BacklogTestCase):

    requests = 16

    def test_many_requests_with_space_for_ten(self):
        self.add_host('host2', 8, 8192, 80)
        uuids = [self.leave() for _ in range(self.requests)]
        most, waited, left = 0, set(), set()

        def look():
            nonlocal most
            self.step()
            self.pass_time(5)
            found = [self.get(uuid) for uuid in uuids]
            waited.update(item.tries for item in found)
            active = [item for item in found
                      if item.state == backlog_model.ACTIVE]
            most = max(most, len(self.alive()))
            # Those that have come first leave first.
            for server in {item.servers[0].uuid
                           for item in active[:5]} - left:
                self.api.delete_server(server)
                left.add(server)
            return sum(item.state == backlog_model.DONE for item in found)

        for wanted in range(8, self.requests + 1, 8):
            self.wait_for(lambda wanted=wanted: look() >= wanted,
                          f'{wanted} to be served')
        self.assertEqual((10, {0}), (most, waited))
        self.step()
        self.assertEqual({}, self.trusts.made)
        self.wait_consistent()
