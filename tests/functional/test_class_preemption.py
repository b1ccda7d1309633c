# SPDX-License-Identifier: Apache-2.0
"""Servers of classes are evicted for others and return."""

import datetime
from unittest import mock

import fixtures
from nova import context as nova_context

# Nova's fixtures do not let numpy be imported any more.
import numpy  # noqa: F401
from oslo_db import exception as db_exc
from oslo_utils import timeutils

from nova_preempt.classes import unshelve_choice
from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.db import server_uptimes
from nova_preempt.scheduler import scheduler_endpoint
from tests.functional import base

CLASSES = [
    {'name': name, 'importance': importance, 'availability': availability,
     'safety_margin_s': '0', 'least_run_s': '0'}
    for name, importance, availability in (
        ('gold', '1', '1'), ('silver', '2', '0.9'), ('bronze', '3', '0.01'))]


class ClassesTestCase(base.PreemptionTestCase):
    """Returns cost no time and passes are frequent, to keep tests short.

    A bronze server has time left as soon as it has run for a hundredth of
    the time that it took to boot.
    """

    enabled = True

    def setUp(self):
        super().setUp()
        self.flags(group='classes', enabled=self.enabled, qos_class=CLASSES,
                   pass_period_s=1)
        self.useFixture(fixtures.MockPatchObject(availability_margin,
                                                 'OVERHEAD_S', 0))
        self.restart_scheduler()
        self.flavors = {
            item['name']: self.create_flavor(
                item['name'], 1, 1024, 10, preemptible=True,
                **{'preemptible:class': item['name']}) for item in CLASSES}
        self.add_hosts('host1')
        self.engine = self.start_engine()

    @property
    def now(self):
        return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)

    @now.setter
    def now(self, value):
        """Nova's records have the time that it is."""

    def boot_of(self, name, host=None):
        server = self.boot(name, self.flavors[name],
                           **({'host': host} if host else {}))
        self.wait(server)
        return server

    def look(self):
        """Run the periodic tasks of engine and scheduler once."""
        for item in self.engine._timed:
            for name, work, _ in item.tasks:
                if name == 'clocks of classes':
                    work()
        self.scheduler.preemption.known.refresh()

    def status(self, server):
        return self.api.get_server(server)['status']

    def run_engine(self):
        self.look()
        self.engine.rounds.run_once(at_once=True)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'decisions to be closed')

    def until(self, condition, what):
        """Let the engine work until it is so."""
        def done():
            self.run_engine()
            return condition()

        self.wait_for(done, what)

    def assert_shelved(self, *servers):
        for server in servers:
            self.wait_for(lambda server=server: self.status(server)
                          == 'SHELVED_OFFLOADED', f'{server} to be shelved')

    def restart_engine(self):
        self.engine._leadership.close()
        self.engine = self.start_engine()


class TestPreempting(ClassesTestCase):

    def full(self):
        """A host with a normal server, and a bronze one with time left."""
        self.boot_normal('other')
        servers = {self.boot_of('bronze')}
        self.look()
        return servers

    def gold(self):
        """A gold one takes the place of one of them: (gold, victim)."""
        servers = self.full()
        gold = self.boot_of('gold')
        victim, = self.last_victims()
        self.assertIn(victim, servers)
        self.assert_shelved(victim)
        self.wait_consistent()
        return gold, victim

    def test_gold_evicts_bronze_which_returns(self):
        gold, victim = self.gold()
        decision = self.last_decision()
        self.assertEqual('create', decision.operation)
        self.assertIn('harm to promises', decision.record['why'])
        # What it costs is what it always was: less than the hour.
        self.assertLess(decision.cost_us, 3600 * 10**6)
        self.assertEqual('shelve', decision.victims[0].action)
        self.assertTrue(decision.victims[0].restore)
        self.look()
        found = server_uptimes.find(self.db)
        self.assertEqual(Kind.EVICTED, found[victim].clocks.kind)
        self.delete(gold)
        self.wait_consistent()
        self.until(lambda: self.status(victim) == 'ACTIVE', 'it to be back')
        self.until(lambda: self.decisions.get_decisions(
            victim_uuid=victim)[-1].victims[0].status == decisions.RESTORED,
            'it to be written down')
        self.assert_consistent()

    def test_a_victim_does_not_evict_its_preemptor(self):
        gold, victim = self.gold()
        self.restart_engine()
        for _ in range(4):
            self.run_engine()
        self.assertEqual('SHELVED_OFFLOADED', self.status(victim))
        # Nor where its owner asks for it.
        self.api.post_server_action(victim, {'unshelve': None})
        self.wait_for(lambda: self.api.get_server(victim)[
            'OS-EXT-STS:task_state'] is None, 'the refusal')
        self.assertEqual('SHELVED_OFFLOADED', self.status(victim))
        self.assertEqual('ACTIVE', self.status(gold))
        self.assertEqual(1, len([
            decision for decision in self.decisions.get_decisions()
            if decision.victims]))
        self.wait_consistent()

    def test_no_return_while_the_engine_is_down(self):
        gold, victim = self.gold()
        self.engine._leadership.close()
        self.delete(gold)
        self.wait_consistent()
        self.engine = self.start_engine()
        self.until(lambda: self.status(victim) == 'ACTIVE', 'it to be back')

    def test_servers_without_a_class(self):
        """They neither evict servers of a class nor are evicted for them."""
        spots = [self.boot_spot(name, 'host1') for name in 'ab']
        self.look()
        self.boot_in_vain(flavor=self.flavors['gold'])
        self.assertEqual(set(spots), self.alive())
        self.delete(spots[0])
        self.wait_consistent()
        self.boot_of('bronze')
        self.look()
        self.boot_in_vain(flavor=self.spot)
        # A normal server ends it first, as nothing was promised to it.
        self.boot_normal()
        self.assertEqual({spots[1]}, self.last_victims())

    def test_a_less_important_server_does_not_evict_an_urgent_one(self):
        for _ in range(2):
            self.boot_of('gold')
        self.look()
        self.boot_in_vain(flavor=self.flavors['bronze'])
        self.boot_in_vain(flavor=self.flavors['gold'])

    def test_servers_with_unknown_clocks(self):
        self.boot_normal('other')
        servers = {self.boot_of('bronze')}
        # The engine has not looked yet.
        self.scheduler.preemption.known.refresh()
        self.boot_in_vain(flavor=self.flavors['gold'])
        with mock.patch.object(server_uptimes, 'find', side_effect=(
                db_exc.DBConnectionError('away'))), mock.patch.object(
                server_uptimes, 'request_classes', side_effect=(
                    db_exc.DBConnectionError('away'))):
            self.scheduler.preemption.known.refresh()
            self.boot_in_vain(flavor=self.flavors['gold'])
            # A normal server is served as ever.
            self.boot_normal()
        victim, = self.last_victims()
        self.assertIn(victim, servers)
        self.assert_shelved(victim)
        self.wait_consistent()

    def test_no_eviction_while_preemption_is_paused(self):
        self.full()
        pauses.pause(self.db, pauses.PREEMPTION, 'test')
        self.boot_in_vain(flavor=self.flavors['gold'])

    def test_preempting_operations_apply(self):
        self.full()
        self.flags(preempting_operations=['resize'], group='preemption')
        self.boot_in_vain(flavor=self.flavors['gold'])

    def test_explain(self):
        servers = self.full()
        answer = self.explain(self.flavors['gold'])
        self.assertEqual('preempts', answer['outcome'])
        self.assertIn(answer['victims'][0]['server_uuid'], servers)
        self.assertLess(answer['cost_us'], 2**63)
        self.assertEqual('no_valid_host',
                         self.explain(self.spot)['outcome'])

    def test_explain_as_a_boot_would_be(self):
        self.full()
        self.flags(preempting_operations=['resize'], group='preemption')
        for flavor in (self.flavors['gold'], self.small):
            answer = self.explain(flavor)
            self.assertEqual(('no_valid_host', []), (
                answer['outcome'], answer['victims']))
            self.boot_in_vain(flavor=flavor)
        self.assertIn('preempting_operations',
                      self.explain(self.small)['reason'])

    def test_explain_leaves_the_headroom_free(self):
        self.boot_of('bronze')
        self.look()
        two = self.create_flavor('two', 2, 2048, 10, preemptible=True,
                                 **{'preemptible:class': 'gold'})
        self.assertEqual('preempts', self.explain(two)['outcome'])
        self.flags(headroom='VCPU:1', group='preemption')
        self.restart_scheduler()
        self.look()
        for flavor in (two, self.spot):
            self.assertEqual('no_valid_host',
                             self.explain(flavor)['outcome'])
            self.boot_in_vain(flavor=flavor)
        # What is kept free is for normal servers.
        self.assertEqual('free', self.explain(self.small)['outcome'])

    def explain(self, flavor):
        return scheduler_endpoint.QueryEndpoint(self.scheduler).explain(
            nova_context.get_admin_context(), flavor, 'project', 'user')


class TestPass(ClassesTestCase):

    def waiting(self):
        """A silver server that waits, and a bronze one on a host."""
        silver = self.boot_of('silver')
        self.look()
        for name in 'ab':
            self.boot_normal(name)
        self.assertEqual({silver}, self.last_victims())
        self.assert_shelved(silver)
        self.wait_consistent()
        self.add_hosts('host2')
        self.boot_normal('other', host='host2')
        return silver, {self.boot_of('bronze', 'host2')}

    def test_a_waiting_server_evicts_others_in_a_pass(self):
        silver, bronze = self.waiting()
        with mock.patch.object(unshelve_choice.LOG, 'info') as info:
            self.until(lambda: self.status(silver) == 'ACTIVE',
                       'it to be back')
        self.assertIn({'waiting': 1, 'room': 0, 'ends': 1},
                      [call.args[1] for call in info.mock_calls])
        victim, = self.last_victims()
        self.assertIn(victim, bronze)
        self.assertEqual('unshelve', self.last_decision().operation)
        self.assert_shelved(victim)
        self.run_engine()
        self.run_engine()
        self.wait_consistent()
        self.assertEqual('SHELVED_OFFLOADED', self.status(victim))

    def test_no_pass_while_paused_or_too_early(self):
        silver, bronze = self.waiting()
        pauses.pause(self.db, pauses.PREEMPTION, 'test')
        for _ in range(3):
            self.run_engine()
        self.assertEqual('SHELVED_OFFLOADED', self.status(silver))
        self.assertLessEqual(bronze, self.alive())
        self.wait_consistent()

    def test_a_server_deleted_while_it_waited(self):
        silver, bronze = self.waiting()
        self.delete(silver)
        for _ in range(2):
            self.run_engine()
        self.assertLessEqual(bronze, self.alive())
        self.assertEqual([], self.decisions.get_victims(decisions.SHELVED))
        self.wait_consistent()


class TestOff(ClassesTestCase):

    enabled = False

    def test_a_class_means_nothing(self):
        for _ in range(2):
            self.boot_of('bronze')
        self.assertIsNone(self.scheduler.preemption.known.promised)
        self.boot_in_vain(flavor=self.flavors['gold'])
        self.boot_normal()
        victim, = self.last_decision().victims
        self.assertEqual('delete', victim.action)
        self.wait_consistent()
