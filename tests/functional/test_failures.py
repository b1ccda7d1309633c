# SPDX-License-Identifier: Apache-2.0
"""Tests of failures during a preemption."""

from unittest import mock

from nova.cmd import manage as nova_manage

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import allocation_audit
from nova_preempt.handover import process_lease
from tests.functional import base


class Killed(BaseException):
    """Ends a thread as a kill ends the process: nothing is cleaned up."""


class Killing:
    """The scheduler dies at a step of a preemption and is started again."""

    #: For how long the conductor waits, which must not be a minute: who it
    #: has given up nobody ends for.
    patience_s = 5

    def begin_killing(self):
        self.flags(rpc_response_timeout=self.patience_s,
                   long_rpc_timeout=self.patience_s)
        # The scheduler has the time it needs.
        self.scheduler.monotonic = lambda: 0.0

    def boot_and_kill(self, target, name, after=True, calls=1, flavor=None):
        """Boot a server of two slots; die in the given call."""
        real = getattr(target, name)
        count, dead = [], []

        def die(*args, **kwargs):
            count.append(1)
            if len(count) < calls:
                return real(*args, **kwargs)
            if after:
                real(*args, **kwargs)
            dead.append(1)
            raise Killed

        with mock.patch.object(target, name, side_effect=die):
            server = self.boot('normal', flavor or self.big)
            self.wait_failed(server)
            # The conductor may have given up before.
            self.wait_for(lambda: dead, f'{name} to be called')
        return server

    def as_of_later(self):
        """Return a patch by which open decisions are a minute old."""
        return mock.patch.object(
            self.decisions, 'get_open_decisions',
            return_value=[(decision, 60.0) for decision, _age
                          in self.decisions.get_open_decisions()])

    def restart(self):
        # What the kernel does when a process ends.
        self.scheduler.preemption.process.heartbeat.stop()
        self.scheduler.preemption.process.owner._files._file.close()
        self.scheduler_service.stop()
        self.scheduler_service = self.start_service(
            'scheduler', host=self.scheduler_service.host)


class TestKilledScheduler(Killing, base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1')
        self.victims = [self.boot_spot('a', 'host1', 100),
                        self.boot_spot('b', 'host1', 200)]
        self.begin_killing()

    def alive(self):
        return {server['id'] for server in self.servers()
                if server['status'] == 'ACTIVE'}

    def assert_outcome(self, status):
        self.assertEqual(status, self.last_decision().status)

    def test_killed_before_an_eviction(self):
        """Right after the intent and the swap, and before the first end."""
        for step in (self.after_the_intent, self.after_the_swap,
                     self.before_the_first_termination):
            outcome = step()
            self.assertEqual(1, len(self.decisions.get_open_decisions()))
            self.restart()
            self.assert_consistent()
            self.assert_outcome(outcome)
            self.assertEqual(set(self.victims), self.alive())

    def after_the_intent(self):
        self.boot_and_kill(self.decisions, 'create_decision')
        return decisions.ABORTED

    def after_the_swap(self):
        self.boot_and_kill(self.scheduler.preemption.clients.placement,
                           'post_allocations')
        self.assertNotIn(self.victims[0], self.allocations()['host1'])
        return decisions.ROLLED_BACK

    def before_the_first_termination(self):
        self.boot_and_kill(self.scheduler.preemption.clients.nova,
                           'force_delete', after=False)
        return decisions.ROLLED_BACK

    def test_after_the_first_of_two_terminations(self):
        nova = self.scheduler.preemption.clients.nova
        self.boot_and_kill(nova, 'force_delete')
        first, second = sorted(self.victims)
        self.wait_gone(first)
        self.restart()
        # Nova frees the space of a server after it shows it no more.
        self.wait_consistent()
        self.assert_outcome(decisions.ROLLED_BACK)
        self.assertEqual({second}, self.alive())

    def test_work_of_a_live_scheduler_is_left_alone(self):
        # Nobody dies, and the machine may be slow.
        self.flags(rpc_response_timeout=60, long_rpc_timeout=120)
        placement = self.scheduler.preemption.clients.placement
        real = placement.post_allocations
        repaired = []

        def post(consumers):
            real(consumers)
            if not repaired:
                repaired.append(self.scheduler.preemption.handover.repair())

        with mock.patch.object(placement, 'post_allocations',
                               side_effect=post):
            self.boot_normal(flavor=self.big)
        self.assertEqual([0], repaired)
        self.assert_consistent()

    def test_a_thread_that_died_is_cleaned_up_after(self):
        self.boot_and_kill(self.scheduler.preemption.clients.placement,
                           'post_allocations')
        self.assertEqual(1, self.scheduler.preemption.handover.repair())
        self.assert_consistent()
        self.assertEqual(set(self.victims), self.alive())

    def test_nova_api_away_at_the_restart(self):
        self.boot_and_kill(self.scheduler.preemption.clients.placement,
                           'post_allocations')
        with mock.patch.object(nova_api.NovaAPI, 'get',
                               side_effect=nova_api.NovaError('away')):
            self.restart()
        self.assertEqual(1, len(self.decisions.get_open_decisions()))
        with mock.patch.object(process_lease, 'INTENT_TIMEOUT_S', 10), (
                self.as_of_later()):
            self.assertEqual(1, self.scheduler.preemption.handover.repair())
        self.assert_consistent()
        self.assertEqual(set(self.victims), self.alive())


class TestLostRaces(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1', 'host2')
        self.cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        self.next = self.boot_spot('c', 'host2', 200)
        self.boot_spot('d', 'host2', 1000)

    def lose(self, times):
        """Change the first victims' allocations before the swap."""
        placement = self.scheduler.preemption.clients.placement
        real = placement.post_allocations
        lost = []

        def post(consumers):
            if len(lost) < times:
                lost.append(consumers)
                consumers = [
                    placement_api.Consumer(
                        consumer.uuid, consumer.allocations,
                        (consumer.generation or 0) + 17,
                        consumer.project_id, consumer.user_id)
                    for consumer in consumers]
            return real(consumers)

        return mock.patch.object(placement, 'post_allocations',
                                 side_effect=post)

    def statuses(self):
        return [decision.status
                for decision in self.decisions.get_decisions()]

    def test_conflicts(self):
        with self.lose(1):
            server = self.boot_normal()
        # The next host is tried.
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self.assert_consistent()
        self.assertEqual([decisions.ABORTED, decisions.DONE],
                         self.statuses())
        self.assertEqual('ACTIVE', self.api.get_server(self.cheap)['status'])
        # After a conflict on every host it starts anew.
        with self.lose(2):
            server = self.boot_normal('second')
        self.assertEqual('host1', server['OS-EXT-SRV-ATTR:host'])
        self.assert_consistent()
        self.assertEqual(4, len(self.servers()))
        # Not without end.
        with mock.patch.object(preemption_policy, 'MAX_ATTEMPTS',
                               2), self.lose(100):
            server = self.boot('third', self.small)
            self.wait_failed(server)
        self.assert_consistent()
        self.assertEqual(5, len(self.servers()))

    def test_answers_of_placement_are_lost(self):
        placement = self.scheduler.preemption.clients.placement
        real = placement.post_allocations

        def post(consumers):
            real(consumers)
            raise placement_api.PlacementError('timeout')

        with mock.patch.object(placement, 'post_allocations',
                               side_effect=post):
            self.boot_normal()
        self.assertEqual({self.cheap}, self.last_victims())
        self.assert_consistent()


class TestSpaceOfVictims(Killing, base.PreemptionTestCase):
    """No other server gets space that victims still use.

    A host of two slots has a normal server, and a preemptible one with notice.
    """

    def setUp(self):
        super().setUp()
        self.flags(maximum_notice_s=1000, group='preemption')
        self.add_host('host1', 2, 2048, 20)
        self.boot_normal('there', host='host1')
        self.victim = self.boot_spot('victim', 'host1', flavor=(
            self.create_flavor('noticed', 1, 1024, 10, preemptible=True,
                               **{'preemptible:notice_s': '1000'})))
        self.begin_killing()

    def assert_nobody_else_gets_it(self):
        self.flags(rpc_response_timeout=60, long_rpc_timeout=120)
        before = self.alive()
        self.wait_failed(self.boot('third', self.small))
        self.assertEqual(before, self.alive())
        self.assertLess(0, len(self.decisions.get_open_decisions()))

    def assert_repaired(self):
        self.restart()
        self.wait_consistent()
        self.assertIn(self.victim, self.alive())

    def test_the_user_deletes_the_server_after_a_lost_answer(self):
        placement = self.scheduler.preemption.clients.placement
        real = placement.post_allocations

        def post(consumers):
            real(consumers)
            placement.get_consumer = away
            raise placement_api.PlacementError('timeout')

        def away(uuid):
            raise placement_api.PlacementError('away')

        with mock.patch.object(placement, 'post_allocations', post), (
                mock.patch.object(placement, 'get_consumer',
                                  placement.get_consumer)):
            server = self.boot('normal', self.small)
            self.wait_failed(server)
        self.delete(server)
        self.assert_nobody_else_gets_it()
        with self.as_of_later():
            self.assertEqual(1, self.scheduler.preemption.handover.repair())
        self.wait_consistent()
        self.assertIn(self.victim, self.alive())

    def test_the_user_deletes_the_server_after_a_crash(self):
        server = self.boot_and_kill(
            self.scheduler.preemption.handover.terminator, '_sleep',
            after=False, flavor=self.small)
        self.delete(server)
        self.assert_nobody_else_gets_it()
        self.assert_repaired()

    def test_nova_takes_a_migration_back_after_a_crash(self):
        self.add_host('host2', 1, 1024, 10)
        server = self.boot_normal('moving', host='host2')['id']
        died = []

        def die(pause_s):
            died.append(pause_s)
            raise Killed

        with mock.patch.object(self.scheduler.preemption.handover.terminator,
                               '_sleep', die):
            self.api.post_server_action(server, {'migrate': None})
            self.wait_for(lambda: died and self.api.get_server(server)[
                'OS-EXT-STS:task_state'] is None, 'Nova to give up')
        self.assertIn(server, self.allocations()['host2'])
        self.assert_nobody_else_gets_it()
        self.assert_repaired()
        self.assertIn(server, self.allocations()['host2'])


class TestStandInDeleted(base.PreemptionTestCase):
    """"nova-manage placement audit --delete" runs during a notice."""

    def setUp(self):
        super().setUp()
        self.flags(maximum_notice_s=1000, group='preemption')
        self.add_host('host1', 1, 1024, 10)
        self.victim = self.boot_spot('victim', 'host1', flavor=(
            self.create_flavor('noticed', 1, 1024, 10, preemptible=True,
                               **{'preemptible:notice_s': '1000'})))

    def begin(self):
        server = self.boot('normal', self.small)
        self.wait_for(lambda: nova_api.NOTICE_KEY in self.api.get_server(
            self.victim)['metadata'], 'notice')
        self.assertEqual(4, self.audit())
        return server

    def audit(self):
        """Run Nova's placement audit; return its exit status."""
        return nova_manage.PlacementCommands().audit(delete=True)

    def test_no_victim_is_evicted_after_the_stand_in_is_deleted(self):
        """The server gets another decision, with another notice."""
        jump = self.jumps(self.scheduler.preemption.handover.terminator)
        server = self.begin()
        parts = self.scheduler.preemption
        self.assertIn((allocation_audit.NO_SPACE, self.last_decision().uuid), [
            (problem.kind, problem.uuid) for problem in allocation_audit.Audit(
                parts.clients.placement, parts.known.servers, self.decisions,
                parts.clients.get_cells, 60).look()])
        jump(1000)
        first, _second = self.wait_for(
            lambda: (found := self.decisions.get_decisions(
                server_uuid=server))[1:] and found, 'a second decision')
        self.assertEqual(
            (decisions.ROLLED_BACK, decisions.KEPT),
            (first.status, first.victims[0].status))
        self.wait_for(lambda: nova_api.NOTICE_KEY in self.api.get_server(
            self.victim)['metadata'], 'notice')
        self.assertEqual({self.victim, server}, self.alive())
        jump(1000)
        self.wait(server)
        self.assertEqual({server}, self.alive())
        self.wait_consistent()

    def test_the_server_uses_free_space_instead(self):
        server = self.begin()
        self.delete(self.victim)
        self.wait(server)
        self.assertEqual(
            [decisions.ROLLED_BACK], [decision.status for decision
                                      in self.decisions.get_decisions()])
        self.wait_consistent()

    def test_the_server_is_refused_if_another_was_faster(self):
        server = self.begin()
        other = self.boot_normal('other')['id']
        self.delete(self.victim)
        self.wait_failed(server)
        self.assertEqual({other}, self.alive())
        self.assert_consistent()


class TestVictimsThatDoNotEnd(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.flags(termination_timeout_s=60, group='preemption')
        self.add_hosts('host1', 'host2')
        self.cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        self.next = self.boot_spot('c', 'host2', 200)
        self.boot_spot('d', 'host2', 1000)

    def refuse(self, *uuids):
        nova = self.scheduler.preemption.clients.nova
        real = nova.force_delete
        jump = self.jumps(self.scheduler.preemption.handover.terminator)

        def force_delete(uuid):
            if uuid in uuids:
                jump(60)
                raise nova_api.NovaError('500')
            return real(uuid)

        return mock.patch.object(nova, 'force_delete',
                                 side_effect=force_delete)

    def test_another_victim_is_found(self):
        with self.refuse(self.cheap):
            server = self.boot_normal()
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self.assert_consistent()
        self.assertEqual('ACTIVE', self.api.get_server(self.cheap)['status'])
        self.assertEqual(
            [decisions.ROLLED_BACK, decisions.DONE],
            [decision.status for decision in self.decisions.get_decisions()])

    def test_no_other_victim_is_left(self):
        servers = {server['id'] for server in self.servers()}
        with self.refuse(*servers):
            server = self.boot('normal', self.small)
            self.wait_failed(server)
        self.assert_consistent()
        self.assertEqual(servers, {
            server['id'] for server in self.servers()
            if server['status'] == 'ACTIVE'})

    def test_victim_deleted_by_its_owner_meanwhile(self):
        nova = self.scheduler.preemption.clients.nova
        real = nova.force_delete

        def force_delete(uuid):
            self.delete(uuid)
            return real(uuid)

        with mock.patch.object(nova, 'force_delete',
                               side_effect=force_delete):
            server = self.boot_normal()
        self.assertEqual('host1', server['OS-EXT-SRV-ATTR:host'])
        self.assert_consistent()


class TestPaused(base.PreemptionTestCase):
    """An operator has stopped preemption: the scheduler obeys at once."""

    def test_no_server_is_evicted_until_the_pause_ends(self):
        self.add_hosts('host1')
        cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        pauses.pause(self.db, pauses.PREEMPTION, 'ticket 4711')
        self.boot_in_vain()
        decision = self.last_decision()
        self.assertEqual(
            (decisions.REFUSED, 'Preemption is paused: ticket 4711'),
            (decision.status, decision.reason))
        pauses.resume(self.db, pauses.PREEMPTION)
        # It looks once a second.
        self.scheduler.preemption.process.pauses._read_at = None
        self.boot_normal()
        self.assertEqual({cheap}, self.last_victims())
        self.assert_consistent()
