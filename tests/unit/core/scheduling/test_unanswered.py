# SPDX-License-Identifier: Apache-2.0

"""Hosts that do not answer are skipped."""

import dataclasses
import unittest

from nova_preempt.core import refusal_texts
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import plan_filtering
from tests.unit.core.scheduling import world

CAPACITY = {'VCPU': 8}


class UnansweredTestCase(unittest.TestCase):
    """Five full hosts with increasingly expensive preemptible servers.

    :ivar broken: {uuid of a host: seconds after which reading it fails}
    :ivar fresh: hosts that need not be read
    :ivar read: hosts that were, in order
    :ivar floors_us: {uuid: what no plan there costs less than}
    """

    def setUp(self):
        self.world = world.World()
        for cost, name in enumerate('hijkl'):
            self.world.add(name, CAPACITY, {},
                           {f'on {name}': (cost, CAPACITY)},
                           uuid=name)
        self.broken, self.fresh, self.read = {}, '', []
        self.floors_us = dict.fromkeys('hijkl', 0)
        self.cycle = self.new_cycle()

    def new_cycle(self, **kwargs):
        cycle = self.world.cycle(CAPACITY, **kwargs)
        self.listed, self.answer = cycle.cloud.listed, cycle.cloud.read
        cycle.cloud.listed = self.list_hosts
        cycle.cloud.read = self.read_host
        return cycle

    def list_hosts(self, max_age_s):
        return [dataclasses.replace(
            each, fresh=each.uuid in self.fresh,
            floor_us=self.floors_us.get(each.uuid, 0))
            for each in self.listed(max_age_s)]

    def read_host(self, host):
        self.read.append(host)
        if host in self.broken:
            raise cloud_view.Unanswered(f'no answer for {host}',
                                        self.broken[host])
        return self.answer(host)

    def cannot_list(self, *args):
        raise cloud_view.Unanswered('nobody is there')

    def order(self, hosts=None, index=0):
        if hosts is None:
            hosts = self.world.offered(self.cycle)
        return ''.join(self.cycle.order(
            [(host, host) for host in hosts] if index else hosts, index))


class TestReading(UnansweredTestCase):

    def test_hosts_with_room_are_still_there(self):
        self.world.set(always=True)
        self.world.add('z', CAPACITY, {}, uuid='z')
        self.cycle = self.new_cycle()
        self.cycle.cloud.listed = self.cannot_list
        self.assertEqual('z', self.order())
        self.assertEqual('nobody is there', self.cycle.refusal)

    def test_one_host_fails(self):
        """The other hosts are evaluated."""
        self.broken = {'h': 0}
        self.assertEqual('ijkl', self.order())
        self.assertEqual('', self.cycle.refusal)
        self.assertEqual('no answer for h', self.cycle.silent.reason)
        self.assertEqual('no answer for h', self.cycle.search.refusals['h'])

    def test_many_hosts_fail_at_once(self):
        """Immediate errors use no time."""
        self.broken = dict.fromkeys('hijk', 0.01)
        self.assertEqual('l', self.order())
        self.assertEqual('', self.cycle.refusal)

    def test_that_takes_long(self):
        """No further host is read; what is known is used."""
        self.fresh = 'l'
        self.broken = dict.fromkeys('hijk', cloud_view.READ_S / 2)
        self.assertEqual('l', self.order())
        self.assertEqual(['h', 'i'], self.read)
        self.assertEqual('', self.cycle.refusal)
        self.assertEqual('no answer for h', self.cycle.silent.reason)
        self.assertIn('not asked', self.cycle.search.refusals['j'])
        self.assertIsNotNone(self.cycle.confirm('l'))

    def test_plans_that_were_found_are_kept(self):
        """The cheapest one is planned before the others fail."""
        self.floors_us = {host: cost for cost, host in enumerate('hijkl')}
        self.broken = dict.fromkeys('ijk', 0.01)
        self.assertEqual('hl', self.order())
        self.assertEqual(list('hijkl'), self.read)

    def test_dearer_victims_of_a_known_host(self):
        """They are found without reading it again."""
        self.world.hosts.clear()
        self.world.add('m', {'VCPU': 16}, {}, {
            'a': (1, CAPACITY), 'b': (2, CAPACITY)}, uuid='m')
        self.world.passes = lambda host, without: 'b' in {
            server.uuid for server in without}
        self.fresh = 'm'
        self.cycle = self.new_cycle()
        self.cycle.silent.note('x', cloud_view.Unanswered('away',
                                                          cloud_view.READ_S))
        self.assertEqual('m', self.order())

    def test_that_takes_long_for_all(self):
        self.broken = dict.fromkeys('hijkl', cloud_view.READ_S)
        self.assertEqual('', self.order())
        self.assertEqual('no answer for h', self.cycle.silent.reason)

    def test_answered_at_last(self):
        self.broken = {'h': 0}
        self.order()
        self.broken = {}
        self.cycle = self.new_cycle(silent=self.cycle.search.silent)
        self.assertEqual('hijkl', self.order())
        self.assertEqual('', self.cycle.silent.reason)

    def test_in_several_passes(self):
        """All passes share the time limit."""
        self.broken = dict.fromkeys('hijkl', cloud_view.READ_S)
        self.order()
        self.cycle = self.new_cycle(silent=self.cycle.search.silent)
        self.order()
        self.assertEqual(['h'], self.read)

    def test_the_list_for_the_second_server(self):
        """Known hosts serve the second server and the third."""
        hosts = self.order()
        self.cycle.claimed('h')
        self.cycle.cloud.listed = self.cannot_list
        self.assertEqual('ijkl', self.order(hosts, 1))
        self.cycle.claimed('i')
        self.assertEqual('jkl', self.order(hosts, 2))
        self.assertEqual('nobody is there', self.cycle.silent.reason)


class TestClaiming(UnansweredTestCase):
    """Each host is known, and fails when it is about to be claimed."""

    def setUp(self):
        super().setUp()
        self.fresh = 'hijkl'

    def cannot_confirm(self, after_s):
        def unanswered(host, max_age_s):
            raise cloud_view.Unanswered('away', after_s)

        self.cycle.cloud.list_again = unanswered

    def test_a_failed_host_is_omitted(self):
        """For further servers and further decisions of the request."""
        hosts = self.order()
        self.cycle.leave('h', cloud_view.Unanswered('500'))
        self.cycle.claimed('i')
        self.assertEqual('jkl', self.order(hosts, 1))
        self.cycle = self.new_cycle(silent=self.cycle.search.silent)
        self.assertEqual('ijkl', self.order())
        self.fresh = ''
        self.assertEqual('ijkl', self.order())
        self.assertNotIn('h', self.read)
        self.assertEqual('500', self.cycle.silent.reason)

    def test_many_fail_at_once(self):
        self.order()
        self.cannot_confirm(0.01)
        for host in 'hijk':
            self.assertIsNone(self.cycle.confirm(host))
        del self.cycle.cloud.list_again
        self.assertIsNotNone(self.cycle.confirm('l'))

    def test_after_others_took_long(self):
        """A planned host is read again before it is claimed."""
        self.order()
        self.cycle.silent.note('x', cloud_view.Unanswered('away',
                                                          cloud_view.READ_S))
        self.cycle.cloud.room_age_s = lambda: plan_filtering.LATEST_S + 1
        self.assertIsNotNone(self.cycle.confirm('h'))
        self.broken = {'i': 0}
        self.assertIsNone(self.cycle.confirm('i'))
        self.assertEqual(['h', 'i'], self.read)
        self.assertIn('i', self.cycle.silent.excluded)

    def test_slow_failures_end_the_search(self):
        """No further host is tried, now or in a new decision."""
        self.order()
        self.cannot_confirm(cloud_view.CLAIM_S / 2)
        self.assertIsNone(self.cycle.confirm('h'))
        self.assertIsNone(self.cycle.confirm('i'))
        self.cycle.cloud.list_again = None
        self.assertIsNone(self.cycle.confirm('j'))
        self.cycle = self.new_cycle(silent=self.cycle.search.silent)
        self.assertEqual('', self.order())
        self.assertEqual('away', self.cycle.refusal)
        self.assertEqual(refusal_texts.Reason.SERVICE, self.cycle.why)
