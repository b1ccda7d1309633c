# SPDX-License-Identifier: Apache-2.0
"""Capacity of pending evictions."""

from __future__ import annotations

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.model import Host, Inventory, Provider, Request
from nova_preempt.core.scheduling import pending_evictions

GIB = 1024


#: {uuid of a decision: ({class: amount} that its victims hold, notice)}
Ends = dict[str, tuple[dict[str, int], float]]


def size(number: int) -> dict[str, int]:
    return {'VCPU': number, 'MEMORY_MB': number * GIB}


def join(request: dict[str, int], used: int, ends: Ends,
         waiting: tuple[dict[str, int], ...] = (),
         longest_s: float = float('inf'),
         **inventory: int) -> tuple[str, ...]:
    """Return the decisions that a request joins, on a host of 8 pieces.

    :param used: by all on the host, the victims included
    """
    held = {f'of {uuid}': resources for uuid, (resources, _) in ends.items()}
    rest = {name: amount - sum(each.get(name, 0) for each in held.values())
            for name, amount in size(used).items()}
    host = Host('host', (Provider('rp', 1, {
        'VCPU': Inventory(8, **inventory),
        'MEMORY_MB': Inventory(8 * GIB)}, {**held, 'rest': rest}),))
    return tuple(ending.decision_uuid for ending in pending_evictions.join(
        Request.of(request), host, pending_evictions.ReleasingHost(tuple(
            pending_evictions.PendingEviction(uuid, {f'of {uuid}': 'delete'},
                                              notice_s)
            for uuid, (_, notice_s) in ends.items()), waiting),
        lambda notice_s: notice_s <= longest_s))


class TestJoin(unittest.TestCase):

    def test_a_request_fits_into_released_space(self) -> None:
        self.assertEqual(('d',), join(size(2), 8, {'d': (size(2), 0)}))

    def test_released_and_free_space_add_up(self) -> None:
        self.assertEqual(('d',), join(size(3), 7, {'d': (size(2), 0)}))

    def test_too_little(self) -> None:
        self.assertEqual((), join(size(3), 8, {'d': (size(2), 0)}))

    def test_too_little_of_one_class(self) -> None:
        self.assertEqual((), join(size(2), 8, {
            'd': ({'VCPU': 2, 'MEMORY_MB': GIB}, 0)}))

    def test_space_of_waiting_requests_is_not_joined(self) -> None:
        endings = {'d': (size(3), 0)}
        self.assertEqual(('d',), join(size(1), 8, endings,
                                      (size(1), size(1))))
        self.assertEqual((), join(size(2), 8, endings,
                                  (size(1), size(1))))

    def test_the_host_would_not_take_it(self) -> None:
        self.assertEqual((), join(size(2), 8, {'d': (size(2), 0)},
                                  max_unit=1))
        self.assertEqual((), join({'VGPU': 1}, 8,
                                  {'d': ({'VGPU': 1}, 0)}))

    def test_a_host_that_holds_more_than_it_has(self) -> None:
        self.assertEqual((), join(size(2), 9, {'d': (size(2), 0)}))

    def test_the_eviction_that_ends_first_is_joined(self) -> None:
        ends = {'a': (size(2), 60), 'b': (size(2), 5)}
        self.assertEqual(('b',), join(size(2), 8, ends))
        self.assertEqual(('b', 'a'), join(size(3), 8, ends))

    def test_too_late(self) -> None:
        endings = {'a': (size(2), 60)}
        self.assertEqual((), join(size(2), 8, endings, (), 59))
        self.assertEqual(('a',), join(size(2), 8, endings, (), 60))

    def test_space_that_a_stand_in_holds_for_a_victim(self) -> None:
        host = Host('host', (Provider('rp', 1, {
            'VCPU': Inventory(8)}, {'other': {'VCPU': 3},
                                    'rest': {'VCPU': 5}}),))
        releasing = pending_evictions.ReleasingHost((
            pending_evictions.PendingEviction('d', {'victim': 'delete'},
            holders={'victim': 'other'}),))
        self.assertEqual({('rp', 'VCPU'): 3},
                         releasing.held(host, 'victim'))
        self.assertEqual({('rp', 'VCPU'): 5}, releasing.held(host, 'rest'))
        for number, joined in ((3, releasing.endings), (4, ())):
            self.assertEqual(joined, pending_evictions.join(
                Request.of({'VCPU': number}), host, releasing))

    def test_nothing_to_join(self) -> None:
        self.assertEqual((), join(size(2), 8, {}))

    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)),
                    max_size=5),
           st.integers(1, 8), st.integers(0, 8),
           st.lists(st.integers(1, 3), max_size=3), st.randoms())
    def test_laws(self, found: list[tuple[int, int]], wanted: int, used: int,
                  others: list[int], random: object) -> None:
        """Joined evictions suffice, none can be spared, in any order."""
        used += sum(amount for amount, _ in found)
        ends: Ends = {str(number): (size(amount), notice_s)
                      for number, (amount, notice_s) in enumerate(found)}
        waiting = tuple(size(amount) for amount in others)
        joined = join(size(wanted), used, ends, waiting)
        shuffled = list(ends.items())
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        self.assertEqual(joined, join(size(wanted), used, dict(shuffled),
                                      waiting))
        need = wanted + sum(others) + used - 8
        freed = [amount for amount, _ in found]
        if joined:
            got = [found[int(uuid)][0] for uuid in joined]
            self.assertGreaterEqual(sum(got), need)
            self.assertLess(sum(got) - min(got), need)
        elif need > 0:
            self.assertTrue(sum(freed) < need or wanted > 8)
