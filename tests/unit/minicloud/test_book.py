# SPDX-License-Identifier: Apache-2.0
"""Tests of the states that the mixed load counts as wrong."""

import threading
import unittest
from unittest import mock

from keystoneauth1 import exceptions as ks_exc

from tests.cloud import book

NAME = 'outages-me-normal.half-0'
CONFLICT = ('Failed to delete allocations for consumer uuid. Error: '
            '{"errors": [{"status": 409, "title": "Conflict"')
SPOT = 'outages-me-spot.half-0'


class TestBook(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(book, 'POLL_S', 0))
        self.listed = []
        self.status = 'ACTIVE'
        self.victims = []
        compute = mock.Mock()
        compute.post.return_value.json.return_value = {
            'server': {'id': 'uuid'}}
        compute.get.side_effect = self._get
        preemption = mock.Mock()
        preemption.preemptions.side_effect = lambda victim_id: iter(
            self.victims)
        self.compute = compute
        self.away = False
        self.book = book.Book('me', compute, preemption, 'image', {
            'normal.half': ('flavor', 5), 'spot.half': ('flavor', 5)},
            mock.Mock(since=lambda moment: self.away))

    def _get(self, path):
        body = {'servers': self.listed} if 'detail' in path else {
            'server': {'id': 'uuid', 'status': self.status}}
        return mock.Mock(json=lambda: body)

    def boot(self, flavor='normal.half', **values):
        return self.book.boot(flavor, threading.Event(), **values)

    def see(self, name=NAME, status='ACTIVE', task=None, **more):
        self.listed = [{'name': name, 'id': 'uuid', 'status': status,
                        'OS-EXT-STS:task_state': task, **more}]
        return self.book.unwanted()

    def test_servers_that_run_as_requested(self):
        self.boot()
        self.assertEqual([], self.see())
        self.assertEqual([], self.book.unsettled())
        self.assertEqual(5, self.book.vcpus())

    def test_refused_servers(self):
        self.boot()
        self.assertEqual([], self.see(status='ERROR', fault={
            'message': 'No valid host was found. There is no room.'}))

    def test_errors_are_excused_while_a_service_is_down(self):
        for away, message, expected in (
                (False, 'Broken', ['was in ERROR, and nothing away: Broken']),
                (True, 'Broken', []), (False, 'Timed out waiting', []),
                (False, CONFLICT, []),
                (False, 'Failed to delete',
                 ['was in ERROR, and nothing away: Failed to delete'])):
            with self.subTest(message, away=away):
                self.setUp()
                self.away = away
                self.boot()
                self.assertEqual(
                    [f'{NAME} {text}' for text in expected],
                    self.see(status='ERROR', fault={'message': message}))

    def test_unwanted_states(self):
        self.boot()
        self.assertEqual([f'{NAME} is SHUTOFF'], self.see(status='SHUTOFF'))
        self.assertEqual([f'{NAME} is BUILD, scheduling'],
                         self.see(status='BUILD', task='scheduling'))
        self.assertEqual([f'{NAME} is BUILD, scheduling'],
                         self.book.unsettled())
        self.assertEqual(['other is ACTIVE, and nobody has asked for it',
                          f'{NAME} is gone, and nobody has ended it'],
                         self.see('other'))

    def test_deleted_servers(self):
        self.boot()
        self.book.delete_one(mock.Mock(choice=lambda found: found[0]))
        self.assertEqual([f'{NAME} is ACTIVE, and was deleted'], self.see())
        self.listed = []
        self.assertEqual([], self.book.unwanted())

    def test_servers_that_are_listed_but_do_not_exist(self):
        self.boot()
        self.see(status='BUILD', task='scheduling')
        self.assertEqual(1, self.book.give_up())
        self.assertEqual([f'{NAME} is BUILD, scheduling'],
                         self.book.unsettled())
        self.assertEqual(0, self.book.half_recorded())
        self.compute.delete.side_effect = ks_exc.NotFound
        self.assertEqual(1, self.book.delete_again())
        self.assertEqual(1, self.book.half_recorded())
        self.assertEqual([], self.book.unsettled() + self.book.unwanted())
        self.assertEqual(0, self.book.delete_again())
        self.listed = []
        self.assertEqual(0, self.book.half_recorded())

    def test_servers_that_were_evicted(self):
        self.boot('spot.half')
        self.assertEqual([f'{SPOT} is gone, and nobody has ended it'],
                         self.book.unwanted())
        self.victims = ['a preemption']
        self.assertEqual([], self.book.unwanted())

    def test_servers_of_a_reservation(self):
        self.boot(reservation='reservation')
        self.assertEqual([], self.book.unwanted())
        self.assertEqual([], self.see(status='SHELVED_OFFLOADED'))
