# SPDX-License-Identifier: Apache-2.0
"""Spare capacity of hosts beyond a headroom."""

from __future__ import annotations

import dataclasses
import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core import headroom_account
from nova_preempt.core.model import Inventory, Provider
from tests.unit.core import support

CLASSES = ('VCPU', 'MEMORY_MB')

amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 20))
wishes = st.dictionaries(
    st.sampled_from(CLASSES),
    st.booleans().flatmap(lambda percent: st.tuples(
        st.integers(0, 100 if percent else 30), st.just(percent))))


def host(name: str, total: dict[str, int],
         used: dict[str, int]) -> Provider:
    return Provider(name, 0, {key: Inventory(amount)
                              for key, amount in total.items()},
                    {'somebody': used})


hosts = st.dictionaries(
    st.sampled_from('abcd'), st.tuples(amounts, amounts)).map(
        lambda found: {name: host(name, *sizes)
                       for name, sizes in found.items()})
groups = st.builds(headroom_account.HostGroup, st.just('group'), wishes, hosts)


class TestParse(unittest.TestCase):

    def test_valid_texts(self) -> None:
        self.assertEqual({}, headroom_account.parse(' '))
        self.assertEqual(
            {'VCPU': (10, True), 'MEMORY_MB': (64, False)},
            headroom_account.parse('VCPU:10%, MEMORY_MB:64'))

    def test_invalid_texts(self) -> None:
        for text in ('VCPU', 'VCPU:', ':1', 'VCPU:101%', 'VCPU:-1', 'A:1.5',
                     'VCPU:5%%', 'VCPU:\u00b2'):
            with self.assertRaisesRegex(ValueError, 'must be CLASS:AMOUNT'):
                headroom_account.parse(text)

    @support.LAW
    @given(wishes)
    def test_format_is_the_inverse_of_parse(
            self, wanted: dict[str, tuple[int, bool]]) -> None:
        text = ', '.join(f'{name}:{amount}{"%" if percent else ""}'
                         for name, (amount, percent) in wanted.items())
        self.assertEqual(wanted, headroom_account.parse(text))


class TestGroup(unittest.TestCase):

    def test_spare(self) -> None:
        nodes = {'a': host('a', {'VCPU': 7}, {'VCPU': 3}),
                 'b': host('b', {'VCPU': 4}, {'VCPU': 6})}
        # An overfull node takes nothing from what is free on others.
        for wanted, spare in (((2, False), 2), ((50, True), 4 - 6),
                              ((99, False), 4 - 11)):
            group = headroom_account.HostGroup('', {'VCPU': wanted}, nodes)
            self.assertEqual({'VCPU': spare}, group.spare())

    @support.LAW
    @given(groups)
    def test_missing_amounts_are_bounded(
            self, group: headroom_account.HostGroup) -> None:
        missing = group.missing({})
        for name, left in group.spare().items():
            self.assertEqual(max(0, -left), missing.get(name, 0))
            self.assertLessEqual(missing.get(name, 0), group.capacity(name))

    @support.LAW
    @given(groups, amounts)
    def test_capacity_being_freed_reduces_missing_amounts(
            self, group: headroom_account.HostGroup,
            freeing: dict[str, int]) -> None:
        before, after = group.missing({}), group.missing(freeing)
        for name in group.wanted:
            self.assertEqual(
                max(0, before.get(name, 0) - freeing.get(name, 0)),
                after.get(name, 0))


class TestTrees(unittest.TestCase):
    """Hosts with resources on nested providers."""

    def tree(self, name: str, taken: int) -> list[Provider]:
        share = dataclasses.replace(
            host('share', {'GPU': 9}, {}), parent_uuid='')
        return [
            host(name, {'VCPU': 4}, {'VCPU': 1}),
            *(dataclasses.replace(
                host(f'{name}{number}', {'GPU': 1},
                     {'GPU': 1} if number < taken else {}),
                parent_uuid=name) for number in range(2)),
            share]

    def test_merge_tree_adds_up_providers(self) -> None:
        found = headroom_account.merge_tree(self.tree('a', 1))
        self.assertEqual('a', found.uuid)
        self.assertEqual({'VCPU': 3, 'GPU': 1}, headroom_account.free(found))
        self.assertEqual({'somebody': {'VCPU': 1, 'GPU': 1}},
                         found.allocations)

    def test_claims_on_nested_providers_count(self) -> None:
        group = headroom_account.HostGroup(
            'group', {'GPU': (1, False)},
            {'a': headroom_account.merge_tree(self.tree('a', 0))},
            frozenset(('a0', 'a1')))
        account = headroom_account.HeadroomAccount([group])
        self.assertFalse(account.lacks({'a1': {'GPU': 1}}))
        account.take(headroom_account.HeadroomClaim({'a1': {'GPU': 1},
                                                     'a': {'VCPU': 1}}))
        self.assertTrue(account.lacks({'a0': {'GPU': 1}}))

    def test_needs_tree_for_classes_of_nested_providers(self) -> None:
        self.assertFalse(headroom_account.needs_tree({'VCPU', 'MEMORY_MB'}))
        self.assertTrue(headroom_account.needs_tree({'VCPU', 'GPU'}))


class TestLedger(unittest.TestCase):

    def one(self, used: int = 4, wanted: int = 4,
            names: str = 'ab') -> headroom_account.HostGroup:
        """A group of hosts of 5 VCPUs, of which a is in use."""
        return headroom_account.HostGroup('', {'VCPU': (wanted, False)}, {
            name: host(name, {'VCPU': 5}, {'VCPU': used * (name == 'a')})
            for name in names})

    def claim(self, amount: int, name: str = 'a',
              done_at: float | None = None) -> headroom_account.HeadroomClaim:
        return headroom_account.HeadroomClaim({name: {'VCPU': amount}},
                                              done_at)

    def check(self, account: headroom_account.HeadroomAccount, spare: int,
              name: str = 'a') -> None:
        """Check how much can be spared around a host."""
        for amount, expected in ((spare, False), (spare + 1, True)):
            self.assertIs(expected, account.lacks(
                {name: {'VCPU': amount, 'DISK_GB': 99}}))

    def test_a_claim_without_resources_never_lacks(self) -> None:
        account = headroom_account.HeadroomAccount([self.one(wanted=9)])
        self.assertTrue(account.lacks({'a': {'VCPU': 1}}))
        self.assertFalse(account.lacks({'a': {'VCPU': 0}}))

    def test_a_host_in_two_groups(self) -> None:
        here = host('a', {'VCPU': 4}, {})
        account = headroom_account.HeadroomAccount([
            headroom_account.HostGroup('', {'VCPU': (1, False)}, {'a': here}),
            headroom_account.HostGroup('', {'VCPU': (2, False)}, {
                'a': here, 'b': host('b', {'VCPU': 0}, {})})])
        self.check(account, 2)
        self.assertFalse(account.lacks({'c': {'VCPU': 99}}))
        account.take(self.claim(1, 'b'))
        self.check(account, 1)

    def test_every_provider_of_a_claim_counts(self) -> None:
        account = headroom_account.HeadroomAccount([
            self.one(names='a', used=1, wanted=4), self.one(names='b')])
        self.assertTrue(account.lacks({'b': {'VCPU': 1}, 'a': {'VCPU': 1}}))
        self.assertFalse(account.lacks({'b': {'VCPU': 1}}))

    def test_claims_since_the_reading_began_count(self) -> None:
        account = headroom_account.HeadroomAccount([self.one()])
        account.take(self.claim(1, 'b', done_at=5))
        self.check(account, 1)
        # This one may have seen it or not.
        account.read([self.one()], 5)
        self.check(account, 1)
        account.read([self.one()], 6)
        self.check(account, 2)

    def test_a_reading_may_miss_a_claim_in_progress(self) -> None:
        account = headroom_account.HeadroomAccount([self.one()])
        claim = self.claim(2)
        account.take(claim)
        account.read([self.one()], 9)
        self.check(account, 0)
        claim.done_at = 9.5
        account.read([self.one(used=2)], 10)
        self.check(account, 4)

    def test_a_claim_released_during_a_reading(self) -> None:
        account = headroom_account.HeadroomAccount([self.one()])
        claim = self.claim(2)
        account.take(claim)
        account.read([self.one()], 9)
        account.give_back(claim)
        account.read([self.one()], 9)
        self.check(account, 2)

    def test_has_room(self) -> None:
        account = headroom_account.HeadroomAccount([self.one()])
        self.assertTrue(account.has_room({'VCPU': 2}))
        # So much is free on one, but not to spare.
        self.assertFalse(account.has_room({'VCPU': 3}))
        self.assertFalse(account.has_room({'VCPU': 1, 'PCPU': 1}))
        account.take(self.claim(2))
        self.assertFalse(account.has_room({'VCPU': 1}))

    def test_count_is_bounded_by_the_headroom(self) -> None:
        """Two of five free VCPUs can be spared, on any host."""
        account = headroom_account.HeadroomAccount([self.one()])
        self.assertEqual({'a': 1, 'b': 1, 'c': 7}, account.count(
            {'VCPU': 1, 'DISK_GB': 99}, {'c': 7, 'b': 5, 'a': 1}))
        self.assertEqual({'a': 0, 'b': 0}, account.count(
            {'VCPU': 3}, {'a': 0, 'b': 1}))
        self.assertEqual({'b': 5}, account.count({'VCPU': 0}, {'b': 5}))
        # It is still as it was, and may be too little.
        self.check(account, 2)
        account.take(self.claim(9))
        self.assertEqual({'b': 0}, account.count({'VCPU': 1}, {'b': 5}))

    @support.LAW
    @given(st.lists(groups, max_size=3), amounts,
           st.dictionaries(st.sampled_from('abcd'), st.integers(0, 9)))
    def test_count_agrees_with_placing_one_by_one(
        self, found: list[headroom_account.HostGroup], wanted: dict[str, int],
        most: dict[str, int]) -> None:
        account = headroom_account.HeadroomAccount(found)
        counts = account.count(wanted, most)
        for name in sorted(most):
            placed = 0
            while placed < most[name] and not account.lacks({name: wanted}):
                account.take(headroom_account.HeadroomClaim({name: wanted}))
                placed += 1
            self.assertEqual(placed, counts[name])

    def test_has_room_without_headroom(self) -> None:
        self.assertTrue(
            headroom_account.HeadroomAccount().has_room({'VCPU': 99}))

    @support.LAW
    @given(st.lists(groups, max_size=3), st.sampled_from('abcd'), amounts,
           amounts)
    def test_a_released_claim_has_no_effect(
            self, found: list[headroom_account.HostGroup], name: str,
            taken: dict[str, int], wanted: dict[str, int]) -> None:
        account = headroom_account.HeadroomAccount(found)
        before = account.lacks({name: wanted})
        claim = headroom_account.HeadroomClaim({name: taken})
        account.take(claim)
        # Taking never makes room.
        self.assertLessEqual(before, account.lacks({name: wanted}))
        account.give_back(claim)
        self.assertEqual(before, account.lacks({name: wanted}))
