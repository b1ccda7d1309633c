# SPDX-License-Identifier: Apache-2.0
"""Tests of the secret by which hosts are chosen for a boot."""

import dataclasses
import unittest

from nova_preempt.core.backlog import boot_host_choice
from tests.unit.core.backlog import base

BOOT = boot_host_choice.BootParameters('p', 'u', 'f', 2)
CHOICE = boot_host_choice.ChosenHosts('p', 'u', 'f', 2, 'r', 1, {'h': 2},
                                      base.ago(-1))


class TestRefusal(unittest.TestCase):

    def test_a_matching_request_is_accepted(self):
        self.assertEqual('', boot_host_choice.refusal(CHOICE, BOOT, base.NOW))

    def test_other_requests_are_refused(self):
        for name, value in (('project_id', 'q'), ('user_id', 'v'),
                            ('flavor_id', 'g'), ('count', 1)):
            self.assertEqual(
                f'it is for another {name}', boot_host_choice.refusal(
                    CHOICE, dataclasses.replace(BOOT, **{name: value}),
                    base.NOW))

    def test_once_and_not_for_long(self):
        for choice, text in (
                (None, 'it is unknown'),
                (dataclasses.replace(CHOICE, used=True), 'already used'),
                (dataclasses.replace(CHOICE, expires_at=base.NOW),
                 'it expired at 20')):
            self.assertIn(text,
                          boot_host_choice.refusal(choice, BOOT, base.NOW))


class TestLeft(unittest.TestCase):

    def test_one_after_another(self):
        left = boot_host_choice.UnplacedServers({'a': 2, 'b': 0})
        left.take('other')
        self.assertEqual([True, False, False], [
            left.is_next(name) for name in ('a', 'b', 'other')])
        left.take('a')
        self.assertTrue(left.is_next('a'))
        left.take('a')
        self.assertFalse(left.is_next('a'))
        left.take('a')
        self.assertFalse(left.is_next('a'))


if __name__ == '__main__':
    unittest.main()
