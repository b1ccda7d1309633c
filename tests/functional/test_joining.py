# SPDX-License-Identifier: Apache-2.0
"""Requests join evictions that have already begun."""

from unittest import mock

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import decisions
from nova_preempt.embedded import embedded_cloud
from tests.functional import base


class JoiningTestCase(base.PreemptionTestCase):
    """A host with victims of two slots, for servers of one."""

    def setUp(self):
        super().setUp()
        self.flags(maximum_notice_s=100, group='preemption')
        self.wide = self.create_flavor(
            'wide', 2, 2048, 20, preemptible=True,
            **{'preemptible:notice_s': '100'})

    def give_notice(self, name='first', **kwargs):
        """Boot a server whose victim has notice. Returns its id."""
        before = len(self.decisions.get_decisions(
            statuses=[decisions.CLAIMED]))
        server = self.boot(name, self.small, **kwargs)
        self.wait_for(
            lambda: len(self.decisions.get_decisions(
                statuses=[decisions.CLAIMED])) > before
            and self.notices(), 'notice')
        return server

    def notices(self):
        return [server['id'] for server in self.servers()
                if nova_api.NOTICE_KEY in server['metadata']]

    def waiting(self):
        return sum(map(len, list(
            self.scheduler.preemption.releasing._taken.values())))

    def power_off(self, server):
        self.api.post_server_action(server, {'os-stop': None})


class TestJoining(JoiningTestCase):

    def setUp(self):
        super().setUp()
        self.add_host('host1', 4, 4096, 40)
        self.cheap = self.boot_spot('cheap', 'host1', 100, self.wide)
        self.other = self.boot_spot('other', 'host1', 1000, self.wide)

    def test_one_victim_for_two(self):
        """Lesson 5: space that is being freed counts."""
        first = self.give_notice()
        second = self.boot('second', self.small)
        self.wait_for(self.waiting, 'the second one to wait')
        self.power_off(self.cheap)
        for server in (first, second):
            self.assertEqual('host1', self.wait(server)[
                'OS-EXT-SRV-ATTR:host'])
        self.assertEqual([{self.cheap}], [
            {victim.server_uuid for victim in decision.victims}
            for decision in self.decisions.get_decisions()])
        self.assertEqual('ACTIVE', self.api.get_server(self.other)['status'])
        self.assertEqual(0, self.waiting())
        self.assert_consistent()

    def test_a_request_joins_only_if_it_fits(self):
        self.give_notice()
        self.boot('second', self.small)
        self.wait_for(self.waiting, 'the second one to wait')
        third = self.boot('third', self.small)
        self.wait_for(lambda: len(self.notices()) == 2, 'another notice')
        self.power_off(self.other)
        self.wait(third)
        self.power_off(self.cheap)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'the end')

    def test_evictions_that_the_engine_has_begun(self):
        """A request joins such evictions, whatever their reason."""
        engine = self.start_engine()
        self.scheduler.preemption.known.refresh()
        engine.evictions.begin(
            self.scheduler.preemption.known.servers.get(self.other),
            'expire', 'age')
        self.wait_for(self.notices, 'notice')
        server = self.boot('normal', self.big)
        self.wait_for(self.waiting, 'it to wait')
        self.power_off(self.other)
        self.wait(server)
        self.assertEqual('ACTIVE', self.api.get_server(self.cheap)['status'])
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'the end')


class TestWhereItMayGo(JoiningTestCase):
    """Space that is coming on a host that does not suit is not waited for."""

    def setUp(self):
        super().setUp()
        self.add_hosts('host1', 'host2')
        self.add_aggregate('left', ['host1'], zone='left')
        self.add_aggregate('right', ['host2'], zone='right')
        self.left = self.boot_spot('a', 'host1', 100, self.wide)
        self.right = self.boot_spot('b', 'host2', 100, self.spot)
        self.boot_spot('c', 'host2', 1000, self.spot)

    def test_another_zone(self):
        first = self.give_notice(availability_zone='left')
        server = self.boot('second', self.small,
                           availability_zone='right')
        self.assertEqual('host2', self.wait(server)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual('BUILD', self.api.get_server(first)['status'])
        self.assertEqual(0, self.waiting())
        self.power_off(self.left)
        self.wait(first)

    def test_a_given_host(self):
        first = self.give_notice(availability_zone='left')
        server = self.boot('second', self.small, host='host2')
        self.assertEqual('host2', self.wait(server)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual(0, self.waiting())
        self.power_off(self.left)
        self.wait(first)


class TestTakenBack(base.PreemptionTestCase):
    """A request rolls back its own lost claims."""

    def setUp(self):
        super().setUp()
        self.add_hosts('host1')
        self.victims = [self.boot_spot('a', 'host1', 100),
                        self.boot_spot('b', 'host1', 200)]

    def test_rolled_back_by_another_just_before_the_swap(self):
        """Another scheduler's recovery found nothing to roll back."""
        placement = self.scheduler.preemption.clients.placement
        real = placement.post_allocations
        closed = []

        def post(consumers):
            if not closed:
                decision, = self.decisions.get_decisions(
                    statuses=[decisions.INTENT])
                closed.append(decision)
                for victim in decision.victims:
                    self.decisions.update_victim(decision.uuid,
                                                 victim.server_uuid,
                                                 decisions.KEPT)
                self.decisions.update_decision(decision.uuid, decision.owner,
                                               decisions.ABORTED, new_owner='')
            return real(consumers)

        with mock.patch.object(preemption_policy, 'MAX_ATTEMPTS',
                               1), mock.patch.object(
                                       placement, 'post_allocations',
                                       side_effect=post):
            self.boot_in_vain()
        self.assertEqual(set(self.victims), self.alive())
        self.assert_consistent()

    def test_roll_back_fails(self):
        """Servers of the same request that found room give it back."""
        self.add_host('host2', 1, 1024, 10)
        preemption = self.scheduler.preemption
        handover = preemption.handover
        with (mock.patch.object(preemption_policy, 'MAX_ATTEMPTS', 1),
              mock.patch.object(
                  handover.recovery, 'roll_back',
                  side_effect=placement_api.PlacementError('away')),
              mock.patch.object(
                  handover.terminator, 'end',
                  side_effect=decisions.LostDecision('lost'))):
            self.fail_many(2)
        self.assertEqual({}, self.allocations().get('host2', {}))
        preemption.handover.repair()
        self.assertEqual(set(self.victims), self.alive())
        self.assert_consistent()

    def fail_many(self, number):
        """Request this number of servers at once; the request fails."""
        body = {'server': self._build_server(
            name='many', image_uuid=embedded_cloud.IMAGE, flavor_id=self.small,
            networks='none')}
        body['server'].update(min_count=number, max_count=number)
        self.api.post_server(body)
        self.wait_for(lambda: len([
            item for item in self.servers() if item['status'] == 'ERROR'])
            == number, 'all to fail')
