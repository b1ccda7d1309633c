# SPDX-License-Identifier: Apache-2.0

import json
import unittest

from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import redaction
from nova_preempt.core.backlog import request_checks
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.batch import backlog_batch
from tests.unit.core.backlog import base


class TestOutline(unittest.TestCase):

    def test_quotes_plain_members_alone(self):
        self.assertEqual(
            {'server': {'name': 'a', 'max_count': 2, 'min_count': '***',
                        'adminPass': '***',
                        'user_data': '***', 'metadata': '***',
                        'key_name': '***', 'typo_of_adminPass': '***'},
             'os:scheduler_hints': '***'},
            redaction.for_log({
                'server': {'name': 'a', 'max_count': 2, 'min_count': 'x',
                           'adminPass': 'x',
                           'user_data': 'x', 'metadata': {'password': 'x'},
                           'key_name': ['x'], 'typo_of_adminPass': 'x'},
                'os:scheduler_hints': {'a': 'x'}}))

    def test_malformed(self):
        for body in ('x', ['x'], 1, None):
            self.assertEqual('***', redaction.for_log(body))
        self.assertEqual({'server': '***'},
                         redaction.for_log({'server': ['adminPass']}))


class TestRedacted(unittest.TestCase):

    def test_all_quotations_of_a_secret_are_redacted(self):
        secret = 'hun"ter\'2\\\n'
        body = {'server': {
            'name': 'a', 'adminPass': secret, 'user_data': 7,
            'personality': [{'path': '/etc/x', 'contents': 'aHVu'}]}}
        for value in (secret, repr(secret), json.dumps(secret),
                      repr(body['server'])):
            text = redaction.redacted(f'Invalid input. Value: {value}. No.',
                                      redaction.secrets(body))
            self.assertNotIn('ter', text)
            self.assertNotIn('aHVu', text)
        self.assertEqual('The value *** is bad.', redaction.redacted(
            'The value 7 is bad.', redaction.secrets(body)))

    def test_stays_on_a_line(self):
        self.assertEqual('a b c', redaction.redacted(
            'a\nb\r\n\u2028 c', {}))

    def test_is_not_long(self):
        """No secret is cut in two before it is found."""
        for text in (1990 * 'x' + 30 * 'secret' + 99999 * 'x',
                     3000 * 'secret'):
            found = redaction.redacted(text, {'adminPass': 'secret'})
            self.assertLess(len(found), 2010)
            self.assertNotIn('secret', found)
            self.assertEqual('...', found[-3:])


class TestParts(unittest.TestCase):
    """Parts of large bodies."""

    def test_parts_kept_of_a_closed_request(self):
        self.assertEqual(
            {'server': {'name': 'a', 'imageRef': 'i', 'adminPass': '***'}},
            redaction.for_closed_request({
                'server': {'name': 'a', 'imageRef': 'i', 'host': 7,
                           'adminPass': '***', 'metadata': {'a': 'b'},
                           'networks': 'auto'},
                'os:scheduler_hints': {'group': 'g'}}))

    def test_parts_used_by_a_pass(self):
        volume = {'boot_index': 0, 'destination_type': 'volume'}
        for server in ({}, {'imageRef': ''}, {'imageRef': 'i'},
                       {'imageRef': 'i', 'host': 'h', 'name': 'a'},
                       {'imageRef': 'i', 'block_device_mapping_v2': [
                           {'boot_index': -1}, {**volume, 'uuid': 'u'}]},
                       {'availability_zone': 'az',
                        'hypervisor_hostname': 'n'}):
            for hints in ({}, {'group': 'g'}, {'same_host': ['u']},
                          {'reservation': ['r', 's'], 'group': 'g'}):
                for name in reservation_rules.HINTS:
                    self.assert_same({'server': server, name: hints})

    def assert_same(self, body):
        part = redaction.for_pass(body)
        for look in (
                lambda body: request_checks.starts_from_volume(body['server']),
                lambda body: group_placement.group_hint(
                    base.request(body=body)),
                reservation_rules.reservations,
                lambda body: backlog_batch.Planner(None)._why_alone(
                    base.request(body=body), frozenset())):
            self.assertEqual(look(body), look(part), body)
        self.assertNotIn('name', part['server'])

    def test_the_part_for_a_pass_is_small(self):
        self.assertLess(len(str(redaction.for_pass({
            'server': {'metadata': {'a': 'b' * 9999}, 'tags': ['t'] * 99,
                       'block_device_mapping_v2': [
                           {'boot_index': 0, 'destination_type': 'volume'}
                       ] * 999},
            'os:scheduler_hints': {'a' * 9999: 'b' * 9999}}))), 200)


if __name__ == '__main__':
    unittest.main()
