# SPDX-License-Identifier: Apache-2.0
"""Hosts chosen by the engine, and users' attempts to choose."""

import datetime

import nova.conf
from oslo_db import exception as db_exc

from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_host_choice

# Nova's fixtures do not let numpy and scipy be imported any more.
from nova_preempt.core.batch import batch_placement  # noqa: F401 (see above)
from nova_preempt.db import boot_host_choices
from nova_preempt.db import pauses
from nova_preempt.embedded import embedded_cloud
from tests.functional import test_backlog
from tests.functional.test_backlog import PROJECT
from tests.functional.test_backlog import USER

SECRET = 'a secret'


class ChosenHostsTestCase(test_backlog.BacklogTestCase):
    """Nova prefers host2, which has more free memory."""

    def setUp(self):
        super().setUp()
        self.add_host('host2', 8, 16384, 80)
        self.flags(group='backlog', batch_mode='exact')
        self.engine = self.start_engine()

    def choose(self, flavor=None, hosts=None, **values):
        """Choose host1, or other hosts, for a boot by the user."""
        hosts = hosts or {'host1': 1}
        boot = {'project_id': PROJECT, 'user_id': USER,
                'flavor_id': flavor or self.small,
                'count': sum(hosts.values())}
        boot.update((name, values.pop(name)) for name in boot
                    if name in values)
        boot_host_choices.keep_choice(self.db, SECRET,
                                      boot_host_choice.ChosenHosts(
            request_uuid='r' * 36, number=1, hosts=hosts,
            expires_at=self.at() + datetime.timedelta(seconds=180),
            **boot, **values))

    def user(self, user=USER, project=PROJECT):
        trust = self.trusts.create('', project, user, [])
        return nova_as_user.UserNova(self.trusts.session(trust),
                                     nova.conf.CONF, 60)

    def boot_as(self, user=None, hint=SECRET, count=1, flavor=None, **hints):
        """Boot as a user, by default the one of the request; the hosts."""
        body = {'server': {
            'name': 'x', 'imageRef': embedded_cloud.IMAGE, 'networks': 'none',
            'flavorRef': flavor or self.small, 'min_count': count,
            'max_count': count, 'tags': [f'test:{len(self.servers())}']},
            'os:scheduler_hints': {boot_host_choice.HINT: hint, **hints}}
        before = {server['id'] for server in self.servers()}
        reply = (user or self.user()).create(body, '2.90')
        self.assertEqual(202, reply.status, reply.text)
        new = [server['id'] for server in self.servers()
               if server['id'] not in before]
        self.assertEqual(count, len(new))
        return sorted(self.wait(uuid)['OS-EXT-SRV-ATTR:host']
                      for uuid in new)

    def clear(self):
        for server in self.servers():
            self.delete(server['id'])


class TestChosenHosts(ChosenHostsTestCase):

    def test_valid_and_invalid_secrets(self):
        self.choose()
        self.assertEqual(['host1'], self.boot_as())
        # Once.
        self.assertEqual(['host2'], self.boot_as())
        for check in (self.check_others, self.check_what_else,
                      self.check_not_there, self.check_several,
                      self.check_many_hosts, self.check_moves):
            self.clear()
            check()
        self.clear()
        self.wait_consistent()

    def check_others(self):
        """A hint that was guessed, seen or kept is no way to a host."""
        for boot in (
                {'hint': 'another secret'}, {'hint': ''},
                {'hint': [SECRET, SECRET]}, {'hint': SECRET * 1000},
                {'user': self.user(user='f' * 32)},
                {'user': self.user(project='f' * 32)},
                {'count': 2}, {'flavor': self.spot}):
            self.choose()
            self.assertEqual({'host2'}, set(self.boot_as(**boot)), boot)
            self.clear()
        # It is still for whom it was.
        self.assertEqual(['host1'], self.boot_as())

    def check_what_else(self):
        self.choose()
        self.pass_time(180)
        self.assertEqual(['host2'], self.boot_as())
        self.choose(used=True)
        self.assertEqual(['host2'], self.boot_as())

    def check_not_there(self):
        """Check that it is placed without the choice and evicts no server."""
        self.choose(hosts={'gone': 1})
        self.assertEqual(['host2'], self.boot_as())
        victims = [self.boot_spot(f'spot{n}', 'host1') for n in range(2)]
        self.choose()
        self.assertEqual(['host2'], self.boot_as())
        self.assertLessEqual(set(victims), self.alive())
        for uuid in victims:
            self.delete(uuid)
        service, = self.api.get_services(binary='nova-compute', host='host1')
        self.api.put_service(service['id'], {'status': 'disabled'})
        self.choose()
        self.assertEqual(['host2'], self.boot_as())
        self.api.put_service(service['id'], {'status': 'enabled'})

    def check_several(self):
        self.choose(hosts={'host1': 2, 'host2': 1})
        self.assertEqual(['host1', 'host1', 'host2'], self.boot_as(count=3))
        self.clear()
        self.choose(hosts={'host1': 1, 'host2': 2})
        self.assertEqual(['host1', 'host2', 'host2'], self.boot_as(count=3))
        self.clear()
        # One has found no room any more.
        self.boot('other', self.small, host='host1')
        self.choose(hosts={'host1': 2})
        self.assertEqual(['host1', 'host2'], self.boot_as(count=2))

    def check_many_hosts(self):
        """Placement does not offer the chosen one, among many."""
        self.flags(group='scheduler', max_placement_results=1)
        self.addCleanup(self.flags, group='scheduler',
                        max_placement_results=1000)
        for name in ('host1', 'host2'):
            self.choose(hosts={name: 1})
            self.assertEqual([name], self.boot_as())
        self.flags(group='scheduler', max_placement_results=1000)

    def check_moves(self):
        """A server that is moved has its hint still."""
        self.choose()
        self.assertEqual(['host1'], self.boot_as())
        server, = self.servers()
        self.add_host('host3', 2, 2048, 20)
        self.choose(hosts={'host3': 1})
        self.act(server['id'], 'migrate')
        moved = self.wait(server['id'], 'VERIFY_RESIZE')
        self.assertEqual('host2', moved['OS-EXT-SRV-ATTR:host'])
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.wait(server['id'])


class TestBatches(ChosenHostsTestCase):

    def test_requests_start_as_planned(self):
        """Placed one by one, the first would use the only host of the second.
        """
        large = self.create_flavor('large', 8, 1024, 10)

        uuids = [self.leave(name) for name in (self.big, large)]
        for uuid in uuids:
            self.step_until(uuid, backlog_model.ACTIVE)
        self.assertEqual(['host1', 'host2'], [
            self.with_tags(self.get(uuid).servers[0].uuid)[
                'OS-EXT-SRV-ATTR:host'] for uuid in uuids])
        self.clear()
        for uuid in uuids:
            self.step_until(uuid, backlog_model.DONE)
        self.assertTrue(boot_host_choices.hosts_of_boots(self.db))
        self.flags(group='backlog', batch_mode='off')
        self.engine = self.start_engine()
        self.step_until(self.leave(self.big), backlog_model.ACTIVE)
        uuid = self.leave(large)
        self.step()
        self.assertEqual(backlog_model.WAITING, self.get(uuid).state)
        # What was chosen is forgotten in time, though nobody chooses now.
        self.pass_time(181)
        self.step()
        self.assertEqual({}, boot_host_choices.hosts_of_boots(self.db))

    def test_the_plan_agrees_with_the_start(self):
        """Showing the plan starts no request."""
        uuids = [self.leave(self.big) for _ in range(2)]
        uuids.append(self.leave(self.create_flavor('none', 9, 1, 1)))
        plan = self.engine.backlog.plan()
        self.assertEqual(('exact', '', 3), (
            plan['mode'], plan['stopped'], plan['waiting']))
        self.assertEqual(uuids[:2],
                         [item['request'] for item in plan['starts']])
        before = {host['name']: host['resources']['VCPU']
                  for host in plan['hosts']}
        self.assertEqual(4, sum(
            use['used_after'] - use['used'] for use in before.values()))
        self.assertEqual([], self.servers())
        for uuid in uuids[:2]:
            self.step_until(uuid, backlog_model.ACTIVE)
        self.assertEqual(
            {name: use['used_after'] for name, use in before.items()},
            {host['name']: host['resources']['VCPU']['used']
             for host in self.engine.backlog.plan()['hosts']})
        pauses.pause(self.db, pauses.BACKLOG, 'a fire')
        self.engine.parts.process.pauses._read_at = None
        self.assertIn('a fire', self.engine.backlog.plan()['stopped'])

    def test_an_engine_killed_during_a_start(self):
        """Hosts chosen before the crash start nothing."""
        uuid = self.leave()
        for after in (False, True):
            with test_backlog.mock.patch.object(
                    boot_host_choices, 'keep_choice', test_backlog.kill(
                        boot_host_choices.keep_choice, after)):
                self.assertRaises(test_backlog.Killed, self.step)
            self.engine = self.start_engine()
            self.pass_time(181)
            self.step()
            self.pass_time(60)
        self.step_until(uuid, backlog_model.ACTIVE)
        self.assertEqual(1, len(self.servers()))
        self.assertEqual(3, len(self.get(uuid).boots))

    def test_chosen_hosts_cannot_be_stored(self):
        uuid = self.leave()
        with test_backlog.mock.patch.object(boot_host_choices, 'keep_choice',
                                            side_effect=db_exc.DBError()):
            self.step()
        found = self.step_until(uuid, backlog_model.ACTIVE)
        self.assertEqual(1, len(found.boots))
        self.assertEqual('host2', self.with_tags(found.servers[0].uuid)[
            'OS-EXT-SRV-ATTR:host'])
