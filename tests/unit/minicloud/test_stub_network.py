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
"""What Nova asks the network API about servers without a network."""

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

    def test_what_it_has_not_is_not_found(self):
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
