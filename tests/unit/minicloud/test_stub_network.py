# SPDX-License-Identifier: Apache-2.0
"""Tests of the stub of the network API."""

import unittest

from minicloud import stub_network


class TestStubNetwork(unittest.TestCase):

    def test_answers(self):
        for method, path, status, body in (
                ('GET', '/v2.0/ports', 200, {'ports': []}),
                ('GET', '/v2.0/floatingips.json', 200, {'floatingips': []}),
                ('GET', '/v2.0/quotas/one', 200, {'quota': {}}),
                ('DELETE', '/v2.0/ports/one', 204, None),
        ):
            with self.subTest(path=path):
                self.assertEqual(
                    (status, body), stub_network.find(method, path, 'host'))

    def test_other_resources_are_not_found(self):
        for method, path in (('GET', '/v2.0/ports/one'),
                             ('POST', '/v2.0/ports'), ('GET', '/v1/ports')):
            with self.subTest(path=path):
                self.assertEqual(
                    404, stub_network.find(method, path, 'host')[0])

    def test_there_is_a_group_that_all_servers_are_in(self):
        _status, body = stub_network.find(
            'GET', '/v2.0/security-groups', 'host')
        self.assertEqual(['default'], [group['name'] for group
                                       in body['security_groups']])
