# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Who is preemptible, who may be a victim now, and at which cost."""

from nova import exception
from nova import utils
from nova.tests.functional.api import client as api_client

from nova_preempt.db import hints
from nova_preempt.embedded import cloud
from tests.functional import base

HINT = {'preemptible': 'true'}


class MarksTestCase(base.PreemptionTestCase):

    def boot_full(self, flavor=None, **kwargs):
        """Boot a normal server on a full cloud; return who ended for it."""
        before = self.alive()
        server = self.boot_normal(flavor=flavor, **kwargs)['id']
        victims = self.last_victims()
        self.assertEqual(before - victims | {server}, self.alive())
        self.assert_consistent()
        return victims


class TestFlavors(MarksTestCase):

    def test_extra_specs(self):
        self.add_host('host1', 5, 5120, 50)
        marked = {}
        for name, extra_specs in (
                ('enabled', {'preemptible:enabled': 'yes'}),
                ('blazar', {'blazar:preemptible': 'true'}),
                ('neither', {'preemptible:enabled': 'false',
                             'blazar:preemptible': 'false'}),
                ('promise', {'preemptible:minimum_runtime_s': '0'}),
                ('both', {'preemptible:enabled': 'true',
                          'blazar:preemptible': 'false'})):
            flavor = self.create_flavor(name, 1, 1024, 10, **extra_specs)
            marked[name] = self.boot_spot(name, 'host1', flavor=flavor)
        self.boot_in_vain(flavor=self.create_flavor('4', 4, 4096, 40))
        self.assertEqual(
            {marked[name] for name in ('enabled', 'blazar', 'both')},
            self.boot_full(self.create_flavor('3', 3, 3072, 30)))
        # Those two never give way.
        self.boot_in_vain()

    def test_preemptible_by_blazar_never_preempts(self):
        self.add_hosts('host1')
        flavor = self.create_flavor('blazar', 1, 1024, 10,
                                    **{'blazar:preemptible': 'true'})
        self.boot_spot('a', 'host1')
        self.boot_spot('b', 'host1', flavor=flavor)
        self.boot_in_vain(flavor=flavor)
        self.assertEqual([], self.db.get_decisions())


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

    def test_what_older_microversions_let_in(self):
        """Nova does not ask the validators; nothing may break by that."""
        self.add_hosts('host1')
        with utils.temporary_mutation(self.admin_api, microversion='2.85'):
            odd = self.create_flavor(
                'odd', 1, 1024, 10, preemptible=True,
                **{'preemptible:minimum_runtime_s': 'an hour'})
            typo = self.create_flavor('typo', 1, 1024, 10,
                                      **{'preemptible:enabeld': 'true'})
        spot = self.boot_spot('a', 'host1', flavor=odd)
        self.boot_spot('b', 'host1', flavor=typo)
        self.boot_in_vain(flavor=self.big)
        self.assertEqual({spot}, self.boot_full())


class TestHint(MarksTestCase):

    def test_not_allowed(self):
        self.add_hosts('host1')
        for name in 'ab':
            self.boot_normal(name, hints=HINT)
        self.assertEqual(set(), hints.get(self.db))
        self.boot_in_vain()

    def test_remembered(self):
        self.flags(allow_hint=True, group='preemption')
        self.add_hosts('host1')
        hinted = [self.boot_spot(name, 'host1', uptime_s, flavor=self.small,
                                 hints=HINT)
                  for name, uptime_s in (('a', 100), ('b', 200))]
        self.assertEqual(set(hinted), hints.get(self.db))
        # It gives way, it does not preempt; and it is forgotten again.
        self.boot_in_vain(hints=HINT)
        self.boot_in_vain(hints={'preemptible': 'yes'}, host='host1')
        self.assertEqual(set(hinted), hints.get(self.db))
        self.assertEqual([], self.db.get_decisions())
        self.assertEqual({hinted[0]}, self.boot_full())
        self.restart_scheduler()
        self.assertEqual({hinted[1]}, self.boot_full())

    def test_false_is_no_mark(self):
        self.flags(allow_hint=True, group='preemption')
        self.add_hosts('host1')
        self.boot_normal('a', hints={'preemptible': 'false'})
        self.boot_normal('b', hints={'preemptible': 'nonsense'})
        self.assertEqual(set(), hints.get(self.db))
        self.boot_in_vain()

    def test_several_at_once_are_forgotten(self):
        self.flags(allow_hint=True, group='preemption')
        self.add_hosts('host1')
        body = self._build_server(name='m', image_uuid=cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        body.update(min_count=3, max_count=3)
        self.api.post_server({'server': body,
                              'OS-SCH-HNT:scheduler_hints': HINT})
        for server in self.servers():
            self.assertRaises(cloud.CloudError, self.wait, server['id'])
        self.assertEqual(set(), hints.get(self.db))
        self.assert_consistent()

    def start_hinted(self):
        self.flags(allow_hint=True, group='preemption')
        self.add_hosts('host1', 'host2')
        self.boot_normal('n', host='host1')
        self.boot_spot('a', 'host2', 10)
        self.boot_spot('b', 'host2', 20)
        return self.boot_spot('moves', 'host1', 500, flavor=self.small,
                              hints=HINT)

    def test_a_hinted_server_moves(self):
        hinted = self.start_hinted()
        alive = self.alive()
        self.act(hinted, 'migrate')
        self.act(hinted, 'resize', {'flavorRef': self.big})
        self.assertEqual(alive, self.alive())
        self.assertEqual({hinted}, hints.get(self.db))
        self.wait_consistent()

    def test_a_hinted_server_when_hints_are_not_allowed_any_more(self):
        """It may be a victim still, so it must not preempt."""
        hinted = self.start_hinted()
        alive = self.alive()
        self.flags(allow_hint=False, group='preemption')
        self.act(hinted, 'migrate')
        self.assertEqual(alive, self.alive())
        self.wait_consistent()
        self.assertEqual({hinted}, self.boot_full(host='host1'))


class TestLeftAlone(MarksTestCase):

    def test_locks_of_owners_do_not_count(self):
        self.add_hosts('host1')
        locked = self.boot_spot('a', 'host1', 10)
        by_admin = self.boot_spot('b', 'host1', 5)
        self.act(locked, 'lock')
        self.change_record(by_admin, locked=True, locked_by='admin')
        self.assertEqual({locked}, self.boot_full())
        self.boot_in_vain()

    def test_locked_or_busy(self):
        self.flags(honored_locks='all', group='preemption')
        self.add_hosts('host1')
        locked = self.boot_spot('a', 'host1', 10)
        busy = self.boot_spot('b', 'host1', 20)
        self.act(locked, 'lock')
        self.change_record(busy, task_state='image_snapshot')
        self.boot_in_vain()
        self.change_record(busy, task_state=None)
        self.assertEqual({busy}, self.boot_full())
        self.act(locked, 'unlock')
        self.assertEqual({locked}, self.boot_full())

    def test_minimum_runtime(self):
        self.flags(minimum_runtime_s=100, group='preemption')
        self.add_host('host1', 4, 4096, 40)
        promised = self.create_flavor(
            'promised', 1, 1024, 10, preemptible=True,
            **{'preemptible:minimum_runtime_s': '1000'})
        shorter = self.create_flavor(
            'shorter', 1, 1024, 10, preemptible=True,
            **{'preemptible:minimum_runtime_s': '10'})
        young = self.boot_spot('young', 'host1', 99)
        old = self.boot_spot('old', 'host1', 100)
        long = self.boot_spot('long', 'host1', 999, flavor=promised)
        short = self.boot_spot('short', 'host1', 50, flavor=shorter)
        self.boot_in_vain(flavor=self.big)
        self.assertEqual({old}, self.boot_full())
        self.boot_in_vain()
        for server, uptime_s in ((young, 100), (long, 1000), (short, 100)):
            self.set_uptime(server, uptime_s, self.now)
        self.assertEqual({young, long, short}, self.boot_full(
            self.create_flavor('3', 3, 3072, 30)))

    def test_time_passes(self):
        self.flags(minimum_runtime_s=100, group='preemption')
        self.add_hosts('host1')
        self.boot_normal()
        spot = self.boot_spot('a', 'host1', 1)
        self.boot_in_vain()
        self.now = self.now.replace(hour=self.now.hour + 1)
        self.assertEqual({spot}, self.boot_full())


class TestStates(MarksTestCase):

    def test_whatever_state_it_is_in(self):
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

    def end_all(self, slots):
        flavor = self.create_flavor('all', slots, slots * 1024, slots * 10)
        server = self.boot_normal(flavor=flavor)['id']
        self.assertEqual({server}, {item['id'] for item in self.servers()})
        self.assert_consistent()
        return self.last_victims()

    def test_soft_deleted(self):
        """Neither a victim's nor its own soft delete keeps the space."""
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
    """Three servers of one slot and one of two, of different uptimes."""

    def choose(self, cost, **uptimes):
        """Whom a server of two slots ends at this cost, by name."""
        self.flags(group='preemption', cost=cost)
        self.restart_scheduler()
        self.add_host('host1', 5, 5120, 50)
        large = self.create_flavor('large-spot', 2, 2048, 20,
                                   preemptible=True)
        names = {}
        for name, uptime_s in uptimes.items():
            flavor = large if name == 'large' else None
            names[self.boot_spot(name, 'host1', uptime_s,
                                 flavor=flavor)] = name
        victims = {names[uuid] for uuid in self.boot_full(self.big)}
        decision = self.last_decision()
        self.assertEqual(cost, decision.record['cost'])
        return victims, decision.cost_us / 1e6

    def test_partial_hour(self):
        self.assertEqual(
            ({'b', 'c'}, 30), self.choose(
                'partial_hour', large=3000, a=600, b=7200 + 10, c=3600 + 20))

    def test_another_billing_period(self):
        self.flags(billing_period_s=60, group='preemption')
        self.assertEqual(
            ({'large'}, 1), self.choose(
                'partial_hour', large=3001, a=600 + 2, b=7200 + 10, c=3659))

    def test_count(self):
        self.assertEqual(({'large'}, 1), self.choose(
            'count', large=3599, a=1, b=2, c=3))

    def test_youngest_first(self):
        self.assertEqual(({'a', 'b'}, 3660 + 60), self.choose(
            'youngest_first', large=4000, a=3660, b=60, c=7200))

    def test_oldest_first(self):
        ten_years = 10 * 365 * 24 * 3600
        self.assertEqual(({'large'}, ten_years - 10), self.choose(
            'oldest_first', large=10, a=100000, b=200000, c=300000))

    def test_oldest_of_equally_many(self):
        self.flags(group='preemption', cost='oldest_first')
        self.restart_scheduler()
        self.add_hosts('host1')
        self.boot_spot('young', 'host1', 3600)
        old = self.boot_spot('old', 'host1', 5000)
        self.assertEqual({old}, self.boot_full())


class TestOptions(MarksTestCase):

    def test_unknown_cost(self):
        self.flags(group='preemption', cost='cheapest')
        exc = self.assertRaises(exception.InvalidConfiguration,
                                self.restart_scheduler)
        for name in ('cheapest', 'count', 'oldest_first', 'partial_hour',
                     'youngest_first'):
            self.assertIn(name, str(exc))

    def test_without_credentials(self):
        """Nobody can be ended: Nova's own behaviour, and it is said."""
        db = self.db
        self.add_hosts('host1')
        alive = {self.boot_spot('a', 'host1'), self.boot_spot('b', 'host1')}
        self.flags(group='preemption', auth_type=None)
        self.restart_scheduler()
        server = self.boot('vain', self.small)
        self.assertRaises(cloud.CloudError, self.wait, server)
        self.wait_for(lambda: self.alive() == alive, 'vain to fail')
        self.assertEqual(alive, set(self.allocations()['host1']))
        self.assertEqual([], db.get_decisions())
        self.assertIn('auth_type is not set', self.stdlog.logger.output)
