# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from nova_preempt.cloud import placement_api

# As Placement 16 says it.
GONE = ("Allocation for resource provider 'c0ffee' that does not exist.")


# As it says why not, at any microversion that we ask for.
REFUSED = ('{"errors": [{"status": 409, "title": "Conflict", '
           '"detail": "x", "code": "%s"}]}')


class TestPost(unittest.TestCase):

    def post(self, code, text=''):
        client = mock.Mock()
        client.post.return_value = mock.Mock(status_code=code, text=text)
        placement_api.Placement(lambda: client).post_allocations(
            [placement_api.Consumer('c', {})])

    def test_outcomes(self):
        self.post(204)
        for code, text, error in (
                (409, 'generation conflict', placement_api.Conflict),
                (400, GONE, placement_api.Conflict),
                (400, 'malformed', placement_api.PlacementError),
                (503, GONE, placement_api.PlacementError)):
            with self.subTest((code, text)):
                self.assertRaises(error, self.post, code, text)

    def test_why_not(self):
        for code, text, is_room in (
                (409, REFUSED % 'placement.undefined_code', True),
                (409, REFUSED % 'placement.concurrent_update', False),
                (409, '<html>of a proxy</html>', False),
                (409, '{"errors": []}', False),
                (409, '[]', False),
                (400, GONE, False)):
            with self.subTest((code, text)):
                with self.assertRaises(placement_api.Conflict) as caught:
                    self.post(code, text)
                self.assertEqual(is_room,
                                 caught.exception.is_capacity_conflict)


class TestRoom(unittest.TestCase):

    def room(self, code, body=None):
        client = mock.Mock()
        client.get.return_value = mock.Mock(
            status_code=code, text='', **{'json.return_value': body})
        return placement_api.Placement(lambda: client).get_room(
            {'CUSTOM_X': 1})

    def test_on_hosts(self):
        self.assertEqual({'root': {'CUSTOM_X': 3}}, self.room(200, {
            'provider_summaries': {'below': {
                'root_provider_uuid': 'root', 'resources': {
                    'CUSTOM_X': {'capacity': 4, 'used': 1}}}}}))

    def test_an_unknown_resource_class(self):
        """Placement answers 400: no host has space."""
        self.assertEqual({}, self.room(400))

    def test_placement_is_down(self):
        self.assertRaises(placement_api.PlacementError, self.room, 503)
