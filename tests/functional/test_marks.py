# SPDX-License-Identifier: Apache-2.0
"""Tests of preemptible servers, eligible victims and their costs."""

from unittest import mock

from nova import utils
from nova.tests.functional.api import client as api_client
from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt.db import preemptible_hints
from nova_preempt.embedded import embedded_cloud
from tests.functional import base

HINT = {'preemptible': 'true'}


class MarksTestCase(base.PreemptionTestCase):

    def boot_full(self, flavor=None, **kwargs):
        """Boot a normal server on a full cloud; return its victims."""
        before = self.alive()
        server = self.boot_normal(flavor=flavor, **kwargs)['id']
        victims = self.last_victims()
        self.assertEqual(before - victims | {server}, self.alive())
        self.assert_consistent()
        return victims


class TestFlavors(MarksTestCase):

    def test_extra_specs(self):
        """Extra specs of older microversions count, too."""
        self.add_host('host1', 5, 5120, 50)
        with utils.temporary_mutation(self.admin_api, microversion='2.85'):
            flavors = {name: self.create_flavor(name, 1, 1024, 10, **specs)
                       for name, specs in (
                ('enabled', {'preemptible:enabled': 'yes'}),
                ('blazar', {'blazar:preemptible': 'true'}),
                ('both', {'preemptible:enabled': 'true',
                          'preemptible:minimum_runtime_s': 'an hour',
                          'blazar:preemptible': 'false'}),
                ('neither', {'preemptible:enabled': 'false',
                             'blazar:preemptible': 'false'}),
                ('typo', {'preemptible:enabeld': 'true'}))}
        marked = {name: self.boot_spot(name, 'host1', flavor=flavor)
                  for name, flavor in flavors.items()}
        # A preemptible one never preempts.
        self.boot_in_vain(flavor=flavors['blazar'])
        self.assertEqual([], self.decisions.get_decisions())
        self.assertEqual(
            {marked[name] for name in ('enabled', 'blazar', 'both')},
            self.boot_full(self.create_flavor('3', 3, 3072, 30)))
        # The other two never give way.
        self.boot_in_vain()


    def test_lifecycle(self):
        """Extra specs of Watcher's specification count where allowed."""
        self.add_host('host1', 2, 2048, 20)
        flavor = self.create_flavor('lifecycle', 1, 1024, 10, **{
            'lifecycle:preemptable': 'true',
            'lifecycle:preempt_policy': 'shelve'})
        self.boot('a', flavor, host='host1')
        self.boot('b', flavor, host='host1')
        self.boot_in_vain()
        self.flags(marks=['lifecycle'], group='preemption')
        self.restart_scheduler()
        self.boot_normal()
        victim, = self.last_decision().victims
        self.assertEqual('shelve', victim.action)


class TestValidators(MarksTestCase):

    def refuse(self, **extra_specs):
        exc = self.assertRaises(
            api_client.OpenStackApiException, self.create_flavor,
            f'bad{len(self.api.get_flavors())}', 1, 1024, 10, **extra_specs)
        self.assertEqual(400, exc.response.status_code)

    def test_extra_specs(self):
        self.refuse(**{'preemptible:enabeld': 'true'})
        self.refuse(**{'preemptible:enabled': 'perhaps'})
        self.refuse(**{'preemptible:enabled': ''})
        self.refuse(**{'preemptible:minimum_runtime_s': '-1'})
        self.refuse(**{'preemptible:minimum_runtime_s': 'an hour'})
        self.refuse(**{'preemptible:minimum_runtime_s': '1.5'})
        good = {'preemptible:enabled': 'True',
                'preemptible:minimum_runtime_s': '3600'}
        flavor = self.create_flavor('good', 1, 1024, 10, **good)
        self.assertEqual(good, self.api.get_extra_specs(flavor))
        self.create_flavor('zero', 1, 1024, 10, **{
            'preemptible:minimum_runtime_s': '0'})
        self.create_flavor('others', 1, 1024, 10, **{
            'blazar:preemptible': 'true', 'somebody:else': 'x'})


class TestHint(MarksTestCase):

    def allow(self, value=True):
        self.flags(marks=value, group='preemption')

    def test_hinted_servers_are_remembered(self):
        self.add_host('host1', 4, 4096, 40)
        self.boot_normal('x', hints=HINT)
        self.assertEqual(set(), preemptible_hints.get(self.db))
        self.allow()
        self.boot_normal('y', hints={'preemptible': 'nonsense'})
        hinted = [self.boot_spot(name, 'host1', uptime_s, flavor=self.small,
                                 hints=HINT)
                  for name, uptime_s in (('a', 100), ('b', 200))]
        self.assertEqual(set(hinted), preemptible_hints.get(self.db))
        # It gives way, it does not preempt; and it is forgotten again.
        self.boot_in_vain(hints={'preemptible': 'yes'}, host='host1')
        self.boot_several_in_vain()
        self.assertEqual(set(hinted), preemptible_hints.get(self.db))
        self.assertEqual([], self.decisions.get_decisions())
        self.assertEqual({hinted[0]}, self.boot_full())
        self.restart_scheduler()
        self.assertEqual({hinted[1]}, self.boot_full())
        # Neither of the first two has the mark.
        self.boot_in_vain()

    def boot_several_in_vain(self):
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        body.update(min_count=2, max_count=2)
        before = self.alive()
        self.api.post_server({'server': body,
                              'OS-SCH-HNT:scheduler_hints': HINT})
        for server in self.servers():
            if server['id'] not in before:
                self.wait_failed(server['id'])

    def test_without_our_database(self):
        """Its owner reads that a service has failed, without details."""
        self.allow()
        self.add_hosts('host1')
        failure = db_exc.DBConnectionError('mysql://user:secret@db')
        with mock.patch.object(preemptible_hints, 'add', side_effect=failure):
            text = str(self.wait_failed(
                self.boot('a', self.small, hints=HINT)))
        self.assertIn('No valid host was found. The request could not be '
                      'scheduled: a service failed or did not answer',
                      text)
        self.assertNotIn('secret', text)

    def test_a_hinted_server_moves(self):
        """It may be a victim even if hints are not allowed any more."""
        self.allow()
        self.add_hosts('host1', 'host2')
        self.boot_normal('n', host='host1')
        self.boot_spot('a', 'host2', 10)
        self.boot_spot('b', 'host2', 20)
        hinted = self.boot_spot('moves', 'host1', 500, flavor=self.small,
                                hints=HINT)
        alive = self.alive()
        self.act(hinted, 'resize', {'flavorRef': self.big})
        self.assertEqual({hinted}, preemptible_hints.get(self.db))
        self.allow(False)
        self.act(hinted, 'migrate')
        self.assertEqual(alive, self.alive())
        self.wait_consistent()
        self.assertEqual({hinted}, self.boot_full(host='host1'))


class TestLeftAlone(MarksTestCase):

    def test_a_minimum_run_time_protects_a_server(self):
        self.flags(minimum_runtime_s=100, group='preemption')
        self.add_host('host1', 4, 4096, 40)
        locked = self.boot_spot('a', 'host1', 1000)
        by_admin = self.boot_spot('b', 'host1', 1000)
        busy = self.boot_spot('c', 'host1', 1000)
        young = self.boot_spot('d', 'host1', 50, flavor=self.create_flavor(
            'promised', 1, 1024, 10, preemptible=True,
            **{'preemptible:minimum_runtime_s': '1000'}))
        self.act(locked, 'lock')
        self.change_record(by_admin, locked=True, locked_by='admin')
        self.change_record(busy, task_state='image_snapshot')
        self.boot_in_vain(flavor=self.big)
        # An owner's lock does not count, unless an option says so.
        self.assertEqual({locked}, self.boot_full())
        self.change_record(busy, task_state=None)
        self.assertEqual({busy}, self.boot_full())
        self.boot_in_vain()
        self.now = self.now.replace(hour=self.now.hour + 1)
        self.assertEqual({young}, self.boot_full())
        self.boot_in_vain()

    def test_locks_of_administrators_and_owners(self):
        """Nova's API shows it with the actions of the server alone."""
        self.add_host('host1', 4, 4096, 40)
        server = self.boot_spot('a', 'host1', 1000)
        nova = self.scheduler.preemption.clients.nova
        self.assertEqual('', nova.get(server).locked_by)
        self.act(server, 'lock')
        self.assertEqual('owner', nova.get(server).locked_by)
        other = api_client.TestOpenStackClient(
            'admin', self.api.base_url, project_id='operators',
            roles=['admin'])
        other.post_server_action(server, {'lock': None})
        self.assertEqual('admin', nova.get(server).locked_by)
        other.post_server_action(server, {'unlock': None})
        self.assertEqual('', nova.get(server).locked_by)


class TestStates(MarksTestCase):

    def test_victims_in_each_state(self):
        self.flags(shelved_offload_time=-1)
        self.add_host('host1', 7, 7168, 70)
        spots = {name: self.boot_spot(name, 'host1') for name in (
            'stopped', 'paused', 'suspended', 'rescued', 'shelved', 'error',
            'active')}
        for name, action, arguments in (
                ('stopped', 'os-stop', None), ('paused', 'pause', None),
                ('suspended', 'suspend', None),
                ('rescued', 'rescue', {'adminPass': 'x'}),
                ('shelved', 'shelve', None),
                ('error', 'os-resetState', {'state': 'error'})):
            self.act(spots[name], action, arguments)
        self.assertEqual(
            ['ACTIVE', 'ERROR', 'PAUSED', 'RESCUE', 'SHELVED', 'SHUTOFF',
             'SUSPENDED'], sorted(server['status']
                                  for server in self.servers()))
        self.assertEqual(set(spots.values()), self.end_all(7))
        # What its owner has shelved is not deleted.
        self.assertEqual(
            [spots['shelved']],
            [server['id'] for server in self.servers()
             if server['status'] == 'SHELVED_OFFLOADED'])

    def end_all(self, slots):
        flavor = self.create_flavor('all', slots, slots * 1024, slots * 10)
        server = self.boot_normal(flavor=flavor)['id']
        # Nova lists a victim for a moment after its guest has ended.
        self.wait_for(
            lambda: {server} == {item['id'] for item in self.servers()
                                 if item['status'] != 'SHELVED_OFFLOADED'},
            'the records of the victims to go')
        self.assert_consistent()
        return self.last_victims()

    def test_soft_deleted(self):
        """Soft-deleted servers do not keep their space."""
        self.flags(reclaim_instance_interval=3600)
        self.add_hosts('host1')
        deleted = self.boot_spot('a', 'host1', 1000)
        active = self.boot_spot('b', 'host1', 2000)
        self.api.delete_server(deleted)
        self.wait(deleted, 'SOFT_DELETED')
        self.assertIn(deleted, self.allocations()['host1'])
        first = self.boot_normal('n1')['id']
        self.assertEqual({deleted}, self.last_victims())
        self.wait_gone(deleted)
        self.assert_consistent()
        second = self.boot_normal('n2')['id']
        self.assertEqual({active}, self.last_victims())
        self.wait_gone(active)
        self.assert_consistent()
        self.assertEqual({first, second}, set(self.allocations()['host1']))


class TestCosts(MarksTestCase):

    def test_partial_hour(self):
        """Three servers of one slot and one of two."""
        self.flags(group='preemption', cost='partial_hour')
        self.restart_scheduler()
        self.add_host('host1', 5, 5120, 50)
        large = self.create_flavor('large-spot', 2, 2048, 20,
                                   preemptible=True)
        names = {self.boot_spot(name, 'host1', uptime_s, flavor): name
                 for name, uptime_s, flavor in (
                     ('large', 3000, large), ('a', 600, None),
                     ('b', 7200 + 10, None), ('c', 3600 + 20, None))}
        self.assertEqual({'b', 'c'}, {
            names[uuid] for uuid in self.boot_full(self.big)})
        decision = self.last_decision()
        self.assertEqual(('partial_hour', 30 * 10**6),
                         (decision.record['cost'], decision.cost_us))


class TestOptions(MarksTestCase):

    def test_unknown_cost(self):
        self.flags(group='preemption', cost='cheapest')
        exc = self.assertRaises(exceptions.InvalidConfiguration,
                                self.restart_scheduler)
        for name in ('cheapest', 'count', 'oldest_first', 'partial_hour',
                     'youngest_first'):
            self.assertIn(name, str(exc))

    def test_an_invalid_headroom(self):
        self.flags(group='preemption', headroom='VCPU')
        self.assertRaisesRegex(exceptions.InvalidConfiguration,
                               "'VCPU' must be CLASS",
                               self.restart_scheduler)

    def test_without_credentials(self):
        """The scheduler behaves as Nova's, and logs that."""
        found = self.decisions
        self.add_hosts('host1')
        alive = {self.boot_spot('a', 'host1'), self.boot_spot('b', 'host1')}
        self.flags(group='preemption', auth_type=None)
        self.restart_scheduler()
        server = self.boot('vain', self.small)
        self.assertRaises(embedded_cloud.CloudError, self.wait, server)
        self.wait_for(lambda: self.alive() == alive, 'vain to fail')
        self.assertEqual(alive, set(self.allocations()['host1']))
        self.assertEqual([], found.get_decisions())
        self.assertIn('auth_type is not set', self.stdlog.logger.output)
