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
"""Space that others are giving up already."""

from __future__ import annotations

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.joining import Ending
from nova_preempt.core.joining import join
from nova_preempt.core.model import Host, Inventory

GIB = 1024


def host(used: int, total: int = 8, **inventory: int) -> Host:
    return Host('rp', 'host', {
        'VCPU': Inventory(total, **inventory),
        'MEMORY_MB': Inventory(total * GIB)},
        {'VCPU': used, 'MEMORY_MB': used * GIB})


def size(number: int) -> dict[str, int]:
    return {'VCPU': number, 'MEMORY_MB': number * GIB}


class TestJoin(unittest.TestCase):

    def test_it_fits_in_what_is_given_up(self) -> None:
        self.assertEqual(('d',), join(size(2), host(8),
                                      [Ending('d', size(2))]))

    def test_with_what_is_free(self) -> None:
        self.assertEqual(('d',), join(size(3), host(7),
                                      [Ending('d', size(2))]))

    def test_too_little(self) -> None:
        self.assertEqual((), join(size(3), host(8), [Ending('d', size(2))]))

    def test_too_little_of_one_class(self) -> None:
        self.assertEqual((), join(size(2), host(8), [
            Ending('d', {'VCPU': 2, 'MEMORY_MB': GIB})]))

    def test_others_wait_for_it_already(self) -> None:
        endings = [Ending('d', size(3))]
        self.assertEqual(('d',), join(size(1), host(8), endings,
                                      [size(1), size(1)]))
        self.assertEqual((), join(size(2), host(8), endings,
                                  [size(1), size(1)]))

    def test_the_host_would_not_take_it(self) -> None:
        self.assertEqual((), join(size(2), host(8, max_unit=1),
                                  [Ending('d', size(2))]))
        self.assertEqual((), join({'VGPU': 1}, host(8),
                                  [Ending('d', {'VGPU': 1})]))

    def test_a_host_that_holds_more_than_it_has(self) -> None:
        self.assertEqual((), join(size(2), host(9), [Ending('d', size(2))]))

    def test_who_ends_first(self) -> None:
        late, soon = (Ending('a', size(2), 60), Ending('b', size(2), 5))
        self.assertEqual(('b',), join(size(2), host(8), [late, soon]))
        self.assertEqual(('b', 'a'), join(size(3), host(8), [late, soon]))

    def test_too_late(self) -> None:
        endings = [Ending('a', size(2), 60)]
        self.assertEqual((), join(size(2), host(8), endings, (), 59))
        self.assertEqual(('a',), join(size(2), host(8), endings, (), 60))

    def test_nobody_ends(self) -> None:
        self.assertEqual((), join(size(2), host(8), []))

    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)),
                    max_size=5),
           st.integers(1, 8), st.integers(0, 8),
           st.lists(st.integers(1, 3), max_size=3), st.randoms())
    def test_laws(self, ends: list[tuple[int, int]], wanted: int, used: int,
                  waiting: list[int], random: object) -> None:
        """What is joined suffices, nothing of it can be spared, any order.
        """
        endings = [Ending(str(number), size(amount), notice_s)
                   for number, (amount, notice_s) in enumerate(ends)]
        others = [size(amount) for amount in waiting]
        joined = join(size(wanted), host(used), endings, others)
        shuffled = list(endings)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        self.assertEqual(joined, join(size(wanted), host(used), shuffled,
                                      others))
        need = wanted + sum(waiting) + used - 8
        freed = {ending.decision_uuid: ending.resources['VCPU']
                 for ending in endings}
        if joined:
            got = [freed[uuid] for uuid in joined]
            self.assertGreaterEqual(sum(got), need)
            self.assertLess(sum(got) - min(got), need)
        elif need > 0:
            self.assertLess(sum(freed.values()), need)
