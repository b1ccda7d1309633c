# SPDX-License-Identifier: Apache-2.0
"""Tests of evictions: notices and actions."""

import importlib.util
import json
import pathlib
import threading
import types
from unittest import mock

from nova import objects
from oslo_messaging.notify import _impl_test

from nova_preempt.cloud import nova_api
from nova_preempt.db import decisions
from nova_preempt.db import preemption_queries
from nova_preempt.embedded import embedded_cloud
from nova_preempt.handover import eviction_observer
from nova_preempt.handover import preemptor_outcomes
from tests.functional import base
from tests.functional import guest

EXAMPLES = pathlib.Path(__file__).parents[2] / 'doc' / 'examples'


def load_example(name):
    """A script of the documentation, as a module that is not run."""
    spec = importlib.util.spec_from_file_location(
        name.replace('-', '_'), EXAMPLES / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class EndsTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1')

    def fill(self, host='host1', **extra_specs):
        """Two servers on the host, the cheaper one first."""
        flavor = self.create_flavor('ends', 1, 1024, 10, preemptible=True,
                                    **extra_specs)
        return [self.boot_spot('a', host, 100, flavor),
                self.boot_spot('b', host, 1000, flavor)]

    def victim(self):
        victim, = self.last_decision().victims
        return victim

    def guest(self, server_id):
        return self.useFixture(guest.Guest(server_id,
                                           self.api_fixture.project_id))

    def boot_and_wait_for_notice(self, victim):
        normal = self.boot('normal', self.small)
        return normal, self.wait_for_notice(victim)

    def wait_for_notice(self, victim):
        def notice():
            return self.api.get_server(victim)['metadata'].get(
                nova_api.NOTICE_KEY)

        return json.loads(self.wait_for(notice, 'the notice'))


class TestNotice(EndsTestCase):

    def test_guest_and_operator_see_it_before_it_ends(self):
        self.send_notifications()
        self.flags(maximum_notice_s=100, group='preemption')
        cheap, other = self.fill(**{'preemptible:notice_s': '100'})
        jump = self.jumps(self.scheduler.preemption.handover.terminator)
        inside = self.guest(cheap)
        self.assertEqual(cheap, inside.read()['uuid'])
        self.assertIsNone(inside.read_notice())
        normal, notice = self.boot_and_wait_for_notice(cheap)
        self.assertEqual(notice, inside.read_notice())
        self.assertEqual('delete', notice['action'])
        self.assertEqual('create', notice['reason'])
        self.assertRegex(notice['deadline'], r'^\d{4}-\d\d-\d\dT.*Z$')
        self.assertEqual('ACTIVE', self.api.get_server(cheap)['status'])
        self.assertEqual('BUILD', self.api.get_server(normal)['status'])
        jump(100)
        self.wait(normal)
        self.wait_gone(cheap)
        self.assert_consistent()
        self.assertEqual(notice['preemption_id'], self.last_decision().uuid)
        self.assertEqual((decisions.GONE, 100), (self.victim().status,
                                                 self.victim().notice_s))
        self.assertNotIn(nova_api.NOTICE_KEY,
                         self.api.get_server(other)['metadata'])
        self.assert_sent(cheap)

    def send_notifications(self):
        _impl_test.reset()
        self.flags(driver=['test'], group='oslo_messaging_notifications')
        self.addCleanup(_impl_test.reset)
        self.restart_scheduler()

    def assert_sent(self, victim):
        """Notifications come from a thread of their own."""
        self.wait_for(lambda: any(
            message['event_type'] == 'preemption.end' for _context, message,
            *_rest in _impl_test.NOTIFICATIONS), 'preemption.end')
        sent = [message for _context, message, _priority, _retry
                in _impl_test.NOTIFICATIONS
                if message['event_type'].startswith('preemption.')]
        self.assertEqual(
            ['preemption.start', 'preemption.notice', 'preemption.end'],
            [message['event_type'] for message in sent])
        decision = self.last_decision()
        for message in sent:
            self.assertEqual(decision.uuid, message['payload']['decision_id'])
        self.assertEqual(victim, sent[2]['payload']['victim']['uuid'])

    def test_two_of_an_anti_affinity_group(self):
        """A server that waits for its victim counts as being on its host."""
        self.flags(maximum_notice_s=100, group='preemption')
        self.add_hosts('host2')
        flavor = self.create_flavor('ends', 1, 1024, 10, preemptible=True,
                                    **{'preemptible:notice_s': '100'})
        cheap, kept, dear, dearest = [
            self.boot_spot(name, host, uptime_s, flavor)
            for name, host, uptime_s in (
                ('a', 'host1', 100), ('b', 'host1', 200),
                ('c', 'host2', 1000), ('d', 'host2', 2000))]
        group = {'group': self.api.post_server_groups(
            {'name': 'g', 'policy': 'anti-affinity'})['id']}
        jump = self.jumps(self.scheduler.preemption.handover.terminator)
        first = self.boot('first', self.small, hints=group)
        self.wait_for_notice(cheap)
        second = self.boot('second', self.small, hints=group)
        self.wait_for_notice(dear)
        jump(100)
        self.assertEqual(['host1', 'host2'], [
            self.wait(server)['OS-EXT-SRV-ATTR:host']
            for server in (first, second)])
        self.assertEqual({kept, dearest, first, second},
                         self.alive())
        self.assert_consistent()

    def test_guest_with_the_documented_script(self):
        self.flags(maximum_notice_s=100, group='preemption')
        cheap, _other = self.fill(**{'preemptible:notice_s': '100'})
        example = load_example('save-and-power-off')
        example.URL = example.URL.replace('http://169.254.169.254',
                                          self.guest(cheap).url)
        commands = []

        def run(command):
            commands.append(command)
            if command == ['poweroff']:
                self.api.post_server_action(cheap, {'os-stop': None})

        example.subprocess = types.SimpleNamespace(run=run)
        example.INTERVAL_S = 0.1
        watcher = threading.Thread(target=example.main)
        watcher.start()
        normal = self.boot_normal()
        watcher.join()
        decision, = self.decisions.get_decisions(server_uuid=normal['id'])
        notice, = decision.victims
        self.assertEqual(
            [[example.SAVE, f'{notice.deadline:%Y-%m-%dT%H:%M:%SZ}',
              'delete'], ['poweroff']], commands)
        self.wait_gone(cheap)

    def test_other_requests_do_not_wait(self):
        self.flags(maximum_notice_s=100, group='preemption')
        cheap, _other = self.fill(**{'preemptible:notice_s': '100'})
        normal, _notice = self.boot_and_wait_for_notice(cheap)
        self.add_host('host2', 1, 1024, 10)
        self.assertEqual('host2', self.boot_normal('free')[
            'OS-EXT-SRV-ATTR:host'])
        self.assertEqual('BUILD', self.api.get_server(normal)['status'])
        # A guest that powers off is taken at its word.
        self.api.post_server_action(cheap, {'os-stop': None})
        self.wait(normal)
        self.assertEqual({cheap}, {
            victim.server_uuid for victim in self.decisions.get_decisions(
                server_uuid=normal)[0].victims})
        self.assert_consistent()

    def test_notice_is_taken_back(self):
        self.flags(termination_timeout_s=60, maximum_notice_s=100,
                   group='preemption')
        cheap, other = self.fill(**{'preemptible:notice_s': '100'})
        nova = self.scheduler.preemption.clients.nova
        jump = self.jumps(self.scheduler.preemption.handover.terminator)

        def refuse(uuid):
            if uuid == cheap:
                jump(60)
                raise nova_api.NovaError('500')
            return type(nova).force_delete(nova, uuid)

        nova.force_delete = refuse
        inside = self.guest(cheap)
        normal, _notice = self.boot_and_wait_for_notice(cheap)
        self.assertEqual('delete', inside.read_notice()['action'])
        jump(100)
        self.wait_for_notice(other)
        jump(100)
        self.wait(normal)
        self.assertEqual('ACTIVE', self.api.get_server(cheap)['status'])
        self.assertIsNone(inside.read_notice())
        self.assertEqual({other}, self.last_victims())
        self.assert_consistent()

    def test_actions_of_users_during_the_notice(self):
        self.flags(maximum_notice_s=100, group='preemption')
        cheap, other = self.fill(**{'preemptible:notice_s': '100'})
        self.owner_deletes_the_new_server(cheap)
        self.owner_shelves(cheap)
        self.administrator_moves(other)

    def owner_deletes_the_new_server(self, victim):
        normal, _notice = self.boot_and_wait_for_notice(victim)
        self.api.delete_server(normal)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'the preemption to be taken back')
        self.assertEqual('ACTIVE', self.api.get_server(victim)['status'])
        self.assertEqual((decisions.ROLLED_BACK, decisions.KEPT),
                         (self.last_decision().status, self.victim().status))
        self.assertNotIn(nova_api.NOTICE_KEY,
                         self.api.get_server(victim)['metadata'])
        self.wait_consistent()

    def owner_shelves(self, victim):
        """The victim is shelved, and its owner can unshelve it.

        Where Nova would offload it later, we do.
        """
        self.flags(shelved_offload_time=3600)
        normal, _notice = self.boot_and_wait_for_notice(victim)
        self.act(victim, 'shelve')
        self.wait(normal)
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(victim)['status'])
        self.assertEqual(decisions.SHELVED, self.victim().status)
        self.assert_consistent()

    def administrator_moves(self, victim):
        normal, _notice = self.boot_and_wait_for_notice(victim)
        self.add_hosts('host2')
        self.act(victim, 'os-migrateLive', {'host': None,
                                            'block_migration': 'auto'})
        self.assertEqual('host1',
                         self.wait(normal)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual('host2', self.api.get_server(victim)[
            'OS-EXT-SRV-ATTR:host'])
        self.assertEqual(decisions.MIGRATED, self.victim().status)
        self.assert_consistent()

    def test_a_victim_that_is_locked_during_the_notice(self):
        """The victim keeps running; the server goes to another host."""
        self.flags(maximum_notice_s=100, group='preemption')
        self.add_hosts('host2')
        cheap, other = self.fill(**{'preemptible:notice_s': '100'})
        for name, uptime_s in (('c', 2000), ('d', 3000)):
            self.boot_spot(name, 'host2', uptime_s)
        jump = self.jumps(self.scheduler.preemption.handover.terminator)
        normal, _notice = self.boot_and_wait_for_notice(cheap)
        self.change_record(cheap, locked=True, locked_by='admin')
        self.wait_for_notice(other)
        self.set_forced_down('host1', True)
        jump(100)
        self.assertEqual('host2',
                         self.wait(normal)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual(
            [(decisions.ROLLED_BACK, {decisions.KEPT}),
             (decisions.ROLLED_BACK, {decisions.KEPT}),
             (decisions.DONE, {decisions.GONE})],
            [(decision.status, {victim.status for victim in decision.victims})
             for decision in self.decisions.get_decisions()])
        for victim in (cheap, other):
            self.assertNotIn(nova_api.NOTICE_KEY,
                             self.api.get_server(victim)['metadata'])
        self.assert_consistent()

    def test_no_filter_sees_the_host_that_was_chosen(self):
        self.fill()
        self.set_forced_down('host1', True)
        self.boot_in_vain(availability_zone='nova:host1')
        self.set_forced_down('host1', False)
        self.boot_normal(availability_zone='nova:host1')

    def set_forced_down(self, host, is_down):
        with self.cell_context() as context:
            service = objects.Service.get_by_compute_host(context, host)
            service.forced_down = is_down
            service.save()

    def test_one_of_two_new_servers_is_deleted(self):
        self.flags(maximum_notice_s=100, group='preemption')
        self.add_hosts('host2')
        jump = self.jumps(self.scheduler.preemption.handover.terminator)
        victims = {*self.fill(**{'preemptible:notice_s': '100'}),
                   self.boot_spot('c', 'host2', 1, self.big_spot())}
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        body.update(min_count=2, max_count=2)
        first = self.api.post_server({'server': body})['id']
        self.wait_for(lambda: sum(
            nova_api.NOTICE_KEY in self.api.get_server(victim)['metadata']
            for victim in victims) == 2, 'two notices')
        second, = (server['id'] for server in self.servers()
                   if server['id'] not in victims | {first})
        self.api.delete_server(second)
        self.wait_for(lambda: (
            'evicts no victims: the server was deleted while its victims '
            'had their notice'
            in self.stdlog.logger.output), 'one to be left alone')
        jump(100)
        self.wait(first)
        self.assertEqual([decisions.DONE, decisions.ROLLED_BACK], sorted(
            decision.status for decision in self.decisions.get_decisions()))
        self.assertEqual(3, len(self.alive()))
        self.wait_consistent()

    def big_spot(self):
        return self.create_flavor('bigspot', 2, 2048, 20, preemptible=True,
                                  **{'preemptible:notice_s': '100'})

    def test_resize_on_the_same_host_is_taken_back(self):
        """The server is on the host, but was not resized."""
        self.flags(allow_resize_to_same_host=True)
        self.flags(termination_timeout_s=2, notice_s=0, group='preemption')
        self.add_host('host2', 4, 4096, 40)
        normal = self.boot_normal('grows', host='host2')['id']
        spots = {self.boot_spot(name, 'host2') for name in 'abc'}
        self.boot_normal('d', host='host1', flavor=self.big)
        before = self.alive()
        with mock.patch.object(eviction_observer.EvictionObserver,
                               'why_unwanted', return_value=None):
            server = self.act(normal, 'resize', {'flavorRef': self.big})
        self.assertEqual('ACTIVE', server['status'])
        self.assertEqual(before, self.alive())
        self.assertLessEqual(spots, self.alive())
        self.assertEqual({decisions.ROLLED_BACK, decisions.REFUSED}, {
            decision.status for decision in self.decisions.get_decisions()})
        self.wait_consistent()


class TestActions(EndsTestCase):

    def test_shelve(self):
        cheap, other = self.fill(**{'preemptible:action': 'shelve'})
        normal = self.boot_normal()
        self.assertEqual('host1', normal['OS-EXT-SRV-ATTR:host'])
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(cheap)['status'])
        self.assertEqual(decisions.SHELVED, self.victim().status)
        # Where Nova would offload it later.
        self.flags(shelved_offload_time=3600)
        self.boot_normal('second')
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(other)['status'])
        self.assert_consistent()

    def test_outcomes_of_new_servers(self):
        """Seen where they are, after their end, and in cell 0."""
        self.fill()
        servers = [self.boot_normal(name)['id'] for name in 'ab']
        self.api.delete_server(servers[1])
        self.wait_gone(servers[1])
        self.scheduler.preemption.handover.outcomes.note()
        failed = self.boot('c', self.create_flavor('huge', 99, 1024, 10))
        self.assertRaises(embedded_cloud.CloudError, self.wait, failed)
        found = preemptor_outcomes.PreemptorOutcomes(self.db, None)._look(
            {*servers, failed}, deleted=True)[0]
        self.assertEqual({'served'}, {
            preemption_queries.get_preemption(self.db, decision.uuid).outcome
            for decision in self.decisions.get_decisions(
                statuses=[decisions.DONE])})
        self.assertEqual((True, 'error'), (found[servers[1]].deleted,
                                           found[failed].vm_state))

    def test_stop(self):
        self.add_host('host2', 2, 2048, 40)
        flavor = self.create_flavor(
            'stops', 1, 1024, 10, preemptible=True,
            **{'preemptible:action': 'stop'})
        cheap = self.boot_spot('c', 'host2', 100, flavor)
        dear = self.boot_spot('d', 'host2', 1000, flavor)
        self.boot_normal(host='host2')
        server = self.api.get_server(cheap)
        self.assertEqual(('SHUTOFF', True),
                         (server['status'], server['locked']))
        self.assertEqual({'DISK_GB': 10}, self.allocations()['host2'][cheap])
        self.assertEqual(decisions.STOPPED, self.victim().status)
        # What only a disk would make room for is not served.
        self.wait_failed(self.boot('vain', self.create_flavor(
            'disk', 1, 1024, 20), host='host2'))
        self.assertEqual('ACTIVE', self.api.get_server(dear)['status'])

    def test_unconfirmed_resize_and_rescue_are_no_refuge(self):
        rescued, other = self.fill(**{'preemptible:action': 'shelve'})
        self.add_hosts('host2')
        larger = self.create_flavor('larger', 2, 2048, 20, preemptible=True,
                                    **{'preemptible:action': 'shelve'})
        resized = self.boot_spot('r', 'host2', 10, larger)
        self.add_hosts('host3')
        self.api.post_server_action(resized, {'resize': {
            'flavorRef': self.create_flavor(
                'other', 2, 1536, 20, preemptible=True,
                **{'preemptible:action': 'shelve'})}})
        self.wait(resized, 'VERIFY_RESIZE')
        # The space that it came from is free once it is confirmed.
        self.boot_normal(flavor=self.big, host='host3')
        self.assertEqual({resized}, self.last_victims())
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(resized)['status'])
        self.boot_normal(flavor=self.big, host='host2')
        self.act(rescued, 'rescue')
        self.boot_normal(host='host1')
        self.assertEqual({rescued}, self.last_victims())
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(rescued)['status'])
        self.assertEqual('ACTIVE', self.api.get_server(other)['status'])
        self.assert_consistent()

    def test_migrate(self):
        """Or the next action, where there is no room elsewhere."""
        self.flags(actions=['migrate', 'delete'], group='preemption')
        cheap, other = self.fill()
        self.add_host('host2', 1, 1024, 10)
        self.boot_normal(host='host1')
        server = self.api.get_server(cheap)
        self.assertEqual(('ACTIVE', 'host2'), (
            server['status'], server['OS-EXT-SRV-ATTR:host']))
        self.assertEqual(decisions.MIGRATED, self.victim().status)
        self.assert_consistent()
        self.boot_normal('second', host='host1')
        self.wait_gone(other)
        self.assertEqual(decisions.GONE, self.victim().status)
        self.assert_consistent()

    def test_migrate_by_flavor(self):
        self.flags(actions=['delete', 'migrate'], group='preemption')
        asks, other = self.fill(**{'preemptible:action': 'migrate'})
        self.add_hosts('host2')
        self.boot_normal(host='host1')
        self.assertEqual('host2', self.api.get_server(asks)[
            'OS-EXT-SRV-ATTR:host'])
        self.assertEqual(('migrate', decisions.MIGRATED),
                         (self.victim().action, self.victim().status))
        # The list allows it, but this one's flavor does not ask for it.
        self.api.delete_server(other)
        self.wait_gone(other)
        plain = self.boot_spot('plain', 'host1', 100)
        self.boot_normal('second', host='host1')
        self.wait_gone(plain)
        self.assertEqual(('delete', decisions.GONE),
                         (self.victim().action, self.victim().status))
        self.assert_consistent()
