# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from openstack import exceptions
from openstack.compute.v2 import server

from nova_preempt.api import pagination
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from tests.unit.api.base import make_uuid
from tests.unit.sdk import base


class TestLists(base.SdkTestCase):

    def setUp(self):
        super().setUp()
        self.ids = [self.add(f'd{number}', 'p', [('v1', 'p', 'spot')], number)
                    for number in range(5)]
        self.enterContext(mock.patch.object(pagination, 'MOST_ITEMS', 2))
        self.asked = []

    def counted(self, environ, start_response):
        """The API behind a proxy that it does not know of."""
        self.asked.append(environ['QUERY_STRING'])
        return self.app({**environ, 'HTTP_HOST': 'inside.example'},
                        start_response)

    def listed(self, service, **query):
        return [item.id for item in service.preemptions(**query)]

    def test_pages(self):
        service = self.connect(preemption_endpoint_override=(
            f'{self.listen(self.counted)}/v1')).preemption
        service.get_endpoint_data()
        for query, number, requests in (
                ({}, 5, 3), ({'limit': 1}, 5, 5), ({'max_items': 2}, 2, 1),
                ({'max_items': 3}, 3, 2), ({'max_items': 0}, 0, 0),
                ({'max_items': 3, 'limit': 1}, 3, 3)):
            self.asked.clear()
            self.assertEqual(self.ids[:number],
                             self.listed(service, **query))
            self.assertEqual(requests, len(self.asked), query)

    def test_queries(self):
        for query, number in (
                ({'status': 'done', 'flavor': 'spot'}, 5),
                ({'status': 'aborted'}, 0),
                ({'marker': self.ids[3], 'status': None}, 1),
                ({'victim_id': make_uuid('v1')}, 5),
                ({'since': '2026-11-20T11:59:58Z'}, 3)):
            self.assertEqual(number, len(self.listed(self.member, **query)),
                             query)
        self.assertEqual([], self.listed(self.admin, all_projects=False))
        self.assertEqual(5, len(self.listed(self.admin, all_projects=True)))

    def test_refusals(self):
        self.assertIn('Unknown query parameters', self.raised(
            exceptions.InvalidResourceQuery, self.listed, self.member,
            state='done'))
        self.assertIn("'marker'", self.raised(
            exceptions.BadRequestException, self.listed, self.member,
            marker='x'))
        self.assertIn('Policy does not allow', self.raised(
            exceptions.ForbiddenException, self.listed, self.member,
            all_projects=True))


class TestPreemptions(base.SdkTestCase):

    def test_one(self):
        uuid = self.add('d', 'p', [('v1', 'p', 'spot')])
        found = self.member.get_preemption(uuid)
        self.assertEqual(
            (uuid, 'done', 'spot', 2, None),
            (found.id, found.status, found.victims[0]['flavor'],
             found.record['resources']['VCPU'], found.host))
        self.assertEqual(self.get(f'/v1/preemptions/{uuid}')['preemption'],
                         found.answer())
        self.assertEqual(found, self.member.get_preemption(found))
        for name in (make_uuid('x'), '../x?y=1', 'a/b', '50%'):
            self.assertRegex(self.raised(
                exceptions.NotFoundException, self.member.get_preemption,
                name), 'There is no preemption|The path is unknown')

    def move(self, uuid, status):
        self.decisions.update_decision(uuid, '', status)

    def test_wait(self):
        uuid = self.add('d', 'p', status=decisions.CLAIMED)
        self.soon(self.move, uuid, decisions.DONE)
        self.assertEqual('done', self.member.wait_for_preemption(
            uuid, interval=0.05, wait=20).status)

    def test_wait_in_vain(self):
        uuid = self.add('d', 'p', status=decisions.CLAIMED)
        self.raised(exceptions.ResourceTimeout,
                    self.member.wait_for_preemption, uuid, interval=0.05,
                    wait=0.1)
        self.soon(self.move, uuid, decisions.ROLLED_BACK)
        self.assertIn('rolled_back', self.raised(
            exceptions.ResourceFailure, self.member.wait_for_preemption,
            uuid, interval=0.05, wait=20))

    def test_simulate(self):
        for who in (make_uuid('p-spot'), server.Server(
                id=make_uuid('p-spot'))):
            made = self.member.simulate_preemption(who, 'a test')
            self.assertEqual({'id': make_uuid('simulated')}, made.answer())
            self.assertEqual('a test', self.engine.calls[-1][-1])
        self.member.simulate_preemption(make_uuid('p-spot'))
        self.assertIn('not preemptible', self.raised(
            exceptions.ConflictException, self.member.simulate_preemption,
            make_uuid('p-normal')))

    def test_explain(self):
        found = self.member.explain_preemption('small')
        self.assertEqual(('preempts', 3, 1), (
            found.outcome, found.victim_count, len(found.victims)))
        self.assertEqual(
            self.post('/v1/explain', {'explain': {'flavor': 'small'}})[
                'explain'], found.answer())
        found = self.admin.explain_preemption(
            'small', availability_zone='az1', host='host1')
        self.assertEqual(('host1', 90), (found.host, found.cost_us))
        self.assertIn('flvor', self.raised(
            exceptions.BadRequestException, self.member.explain_preemption,
            'small', flvor='x'))

    def test_chances(self):
        self.assertEqual(
            [(flavor, 'az1', 3, 7) for flavor in ('a', 'b')],
            [(item.flavor, item.availability_zone, item.preemptible,
              item.normal) for item in self.member.placement_chances(
                  ['a', 'b'], 'az1')])

    def test_statistics(self):
        self.add('d', 'p', [('v1', 'p', 'spot')])
        found = self.member.get_preemption_statistics(
            since='2026-11-20T00:00:00Z')
        self.assertEqual((1, 'spot', '2026-11-20T00:00:00Z'), (
            found.total['victims'], found.flavors[0]['flavor'], found.since))
        self.assertIn('untill', self.raised(
            exceptions.BadRequestException,
            self.member.get_preemption_statistics, untill='x'))


class TestPauses(base.SdkTestCase):

    def test_pause_and_resume(self):
        made = self.admin.pause('power', 'a fire')
        self.assertEqual(('power', 'a fire', 'admin'), (
            made.what, made.reason, made.user_id))
        self.assertEqual([made.answer()], [
            item.answer() for item in self.admin.pauses()])
        self.admin.resume(made)
        self.assertEqual({}, pauses.get(self.db))
        self.admin.resume('power')
        self.assertIn('power is not paused', self.raised(
            exceptions.NotFoundException, self.admin.resume, 'power',
            ignore_missing=False))
