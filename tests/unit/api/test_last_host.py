# SPDX-License-Identifier: Apache-2.0
"""Many ask for the last host, on SQLite and whatever OS_TEST_DATABASES names.

OS_TEST_DATABASES is a list of URLs of empty databases, separated by blanks.
"""

import concurrent.futures
import json
import os
import unittest

from nova_preempt.db import models
from tests.unit.api import base

PATH = '/v1/reservations'


class TestLastHost(base.AnsweringTestCase):

    microversion = '1.1'
    url = None

    def setUp(self):
        super().setUp()
        self.addCleanup(self.clear)
        for number in range(2):
            self.inventory.add(f'host{number}')

    def database(self):
        return self.url or super().database()

    def clear(self):
        with self.db.writer() as session:
            for table in (models.ReservationHost, models.Reservation):
                session.query(table).delete()

    def reserve(self, number):
        body = {'reservation': {'duration': 3600}}
        response = self.request(
            PATH, 'POST', f'u:p{number}', content_type='application/json',
            body=json.dumps(body).encode())
        return response.status_int, response.json

    def test_the_last_host_is_granted_once(self):
        self.assertEqual(201, self.reserve('first')[0])
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(self.reserve, range(50)))
        codes = [code for code, _answer in answers]
        self.assertEqual([201] + [409] * 49, sorted(codes))
        for code, answer in answers:
            if code == 409:
                self.assertIn('of 2 matching hosts', answer['error']
                              ['message'])
        found = self.get(f'{PATH}?all_projects=true',
                         'admin:z')['reservations']
        self.assertEqual([['host0'], ['host1']], sorted(
            [host['name'] for host in item['hosts']] for item in found))


def load_tests(loader, tests, pattern):
    """Run the tests on each database."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        case = TestLastHost('test_the_last_host_is_granted_once')
        case.url = url
        suite.addTest(case)
    return suite
