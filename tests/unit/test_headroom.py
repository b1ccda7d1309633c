# SPDX-License-Identifier: Apache-2.0
"""Tests of the space that a headroom leaves, over time."""

import unittest
from unittest import mock

from nova_preempt import headroom
from nova_preempt.core import headroom_account
from nova_preempt.core import model


def state(uuid, total, used):
    return model.Provider(
        uuid, 1, {'VCPU': model.Inventory(total)},
        {'somebody': {'VCPU': used}})


class TestHeadroom(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0
        self.headroom = headroom.Headroom(
            mock.Mock(headroom='VCPU:4'), None, None, lambda: self.now)
        self.read([self.group()])

    def group(self, used=4, names='ab', wanted=4):
        return headroom_account.HostGroup('', {'VCPU': (wanted, False)}, {
            name: state(name, 5, used if name == 'a' else 0)
            for name in names})

    def read(self, groups, max_age_s=0):
        with mock.patch.object(self.headroom, 'groups',
                               return_value=groups) as reading:
            self.headroom.refresh(max_age_s)
        return reading.called

    def is_closed(self, amount, node='a'):
        return self.headroom.is_closed(node, {'VCPU': amount, 'DISK_GB': 99})

    def test_servers_placed_since_the_reading_count(self):
        self.now = 1
        self.headroom.placed('b', {'VCPU': 2})
        self.assertTrue(self.is_closed(1))
        # A reading that began before may have seen it or not.
        self.read([self.group()])
        self.assertTrue(self.is_closed(1))
        self.now = 2
        self.read([self.group()])
        self.assertFalse(self.is_closed(2))

    def claim(self, amount, claims=True, meanwhile=lambda: None):
        def real_claim():
            meanwhile()
            return claims

        return self.headroom.claim({'a': {'resources': {'VCPU': amount}}},
                                   real_claim)

    def test_claim(self):
        self.assertFalse(self.claim(3))
        self.assertFalse(self.claim(2, claims=False))
        self.assertTrue(self.claim(1))
        self.assertTrue(self.claim(1))
        self.assertFalse(self.claim(1))

    def test_claim_that_fails(self):
        def fail():
            raise OSError

        self.assertRaises(OSError, self.claim, 2, meanwhile=fail)
        self.assertTrue(self.claim(2))

    def test_read_during_a_claim(self):
        """It may have missed the claim, but not one that is over."""
        self.claim(2, meanwhile=lambda: self.read([self.group()]))
        self.assertTrue(self.is_closed(1))
        self.now = 1
        self.read([self.group(used=2)])
        self.assertFalse(self.is_closed(4))
        self.claim(2, claims=False,
                   meanwhile=lambda: self.read([self.group()]))
        self.assertFalse(self.is_closed(2))
        self.assertTrue(self.is_closed(3))

    def test_read_when_it_is_old(self):
        self.now = 5
        self.assertFalse(self.read([], 5))
        self.now = 5.1
        self.assertTrue(self.read([], 5))

    def test_the_last_reading_stays_after_a_failure(self):
        with mock.patch.object(self.headroom, 'groups',
                               side_effect=OSError), self.assertLogs():
            self.headroom.refresh()
        self.assertTrue(self.is_closed(3))

    def test_has_room(self):
        self.assertTrue(self.headroom.has_room({'VCPU': 2}))
        self.assertFalse(self.headroom.has_room({'VCPU': 3}))
        self.assertFalse(self.headroom.has_room({'VCPU': 1, 'PCPU': 1}))
        self.read([])
        self.assertTrue(self.headroom.has_room({'VCPU': 99}))
