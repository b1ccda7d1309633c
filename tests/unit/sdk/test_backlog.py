# SPDX-License-Identifier: Apache-2.0

"""Requests for servers, with openstacksdk."""

from openstack import exceptions

from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_store
from tests.unit.api import base as api_base
from tests.unit.sdk import base


class TestRequests(base.SdkTestCase):

    microversion = '1.3'

    def create(self, **values):
        return self.member.create_backlog_request(body={'server': {
            'name': 'batch', 'imageRef': self.reading.image_id,
            'networks': 'none'}}, **{'flavors': ['f1'], **values})

    def becomes(self, uuid, state):
        backlog_store.change(self.db, uuid, backlog_model.STATES, api_base.NOW,
                             state=state, reason='No valid host.')

    def test_life(self):
        made = self.create(name='wrf', count=3, least_count=1,
                           flavors=['f2'], class_name='gold',
                           longest_wait_s=60)
        self.assertEqual(
            ('wrf', 'waiting', 3, 'gold', 60, 'spot'),
            (made.name, made.status, made.count, made.class_name,
             made.longest_wait_s, made.flavors[0]['name']))
        shown = made.answer()
        # By 1.5, and its clocks count.
        self.assertEqual(0.95, shown.pop('promised_availability'))
        self.assertEqual(0, shown.pop('availability')['running_s'])
        self.assertEqual(
            self.get(f'/v1/requests/{made.id}')['request'], shown)
        found, = self.member.backlog_requests(status='waiting')
        self.assertEqual(made.id, found.id)
        changed = self.member.update_backlog_request(
            found, name='b', class_name='', longest_wait_s=None)
        self.assertEqual(('b', '', None), (
            changed.name, changed.class_name, changed.longest_wait_s))
        self.member.cancel_backlog_request(changed)
        self.assertEqual('cancelled',
                         self.member.get_backlog_request(made.id).status)
        self.raised(exceptions.ConflictException,
                    self.member.cancel_backlog_request, made.id)

    def test_with_its_servers(self):
        made = self.create()
        self.member.cancel_backlog_request(made, servers=True)
        self.assertTrue(backlog_store.get(self.db, made.id).ends_servers)

    def test_find(self):
        unknown = api_base.make_uuid('unknown')
        self.assertIsNone(self.member.find_backlog_request('a'))
        self.raised(exceptions.NotFoundException,
                    self.member.find_backlog_request, 'a',
                    ignore_missing=False)
        made = self.create(name='a')
        for name in ('a', made.id):
            self.assertEqual(made.id,
                             self.member.find_backlog_request(name).id)
        self.create(name='a')
        self.raised(exceptions.DuplicateResource,
                    self.member.find_backlog_request, 'a')
        self.member.cancel_backlog_request(unknown)
        self.raised(exceptions.NotFoundException,
                    self.member.cancel_backlog_request, unknown,
                    ignore_missing=False)

    def test_refused(self):
        self.assertIn('request.count', self.raised(
            exceptions.BadRequestException, self.create, count=0))
        self.raised(exceptions.InvalidResourceQuery,
                    self.member.backlog_requests, name='x')

    def test_wait(self):
        made = self.create()
        self.soon(self.becomes, made.id, backlog_model.ACTIVE)
        found = self.member.wait_for_backlog_request(made, interval=0.05,
                                                     wait=60)
        self.assertEqual('active', found.status)
        self.becomes(made.id, backlog_model.FAILED)
        self.raised(exceptions.ResourceFailure,
                    self.member.wait_for_backlog_request, made,
                    interval=0.05, wait=60)

    def test_numbers(self):
        self.create()
        self.assertEqual(1, self.member.get_backlog_statistics(
            hours=2).total['requests'])
        self.assertEqual([], self.member.get_backlog_report(
            since='2026-01-01T00:00:00Z', until='2026-01-02T00:00:00Z'
        ).classes)

    def test_classes(self):
        made = self.create(flavors=['f2'], class_name='gold')
        self.assertEqual(
            [('gold', 1, 0.95, True), ('silver', 2, 0.9, False)],
            [(item.name, item.importance, item.availability, item.open)
             for item in self.member.backlog_classes()])
        found = self.member.get_backlog_request(made.id)
        self.assertEqual(0.95, found.promised_availability)
        self.assertEqual(0, found.availability['running_s'])

    def test_plan(self):
        self.microversion = '1.4'
        found = self.admin.get_backlog_plan()
        self.assertEqual(
            ('exact', '', 3, 2, 3),
            (found.mode, found.stopped, found.requests_waiting,
             len(found.starts), len(found.hosts)))
        self.assertEqual({'host1', 'host2'}, {
            host['name'] for host in found.starts[0]['hosts']})
        self.assertEqual(['', 'It asks for VGPU.'],
                         [item['reason'] for item in found.starts])
        self.raised(exceptions.ForbiddenException,
                    self.member.get_backlog_plan)
