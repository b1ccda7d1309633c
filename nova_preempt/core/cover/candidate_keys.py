# SPDX-License-Identifier: Apache-2.0

"""Integer keys of candidates; their sums order all sets.

Sets are compared by (cost, number of victims, surplus, sorted uuids). All
four can be had from sums: the surplus less a constant is additive, and of
two equally large sets the one with the smaller sorted uuids is the one with
the larger sum of ``2**(n - 1 - rank)``. Put side by side in one integer,
with room enough for carries, the four compare as a tuple would, and a sum
of keys is the key of the set. It follows that no two sets have the same
key, so that the best one is unique and no method, nor the order of the
input, can matter; and that a key names its set (``decode``), so that no
search needs to remember how it came to a sum.
"""

from collections.abc import Sequence
import dataclasses

from nova_preempt.core.model import Amounts, Candidate

#: Amounts of different classes are added up as shares of capacity, in
#: billionths: fine enough to order flavors, and a whole number.
SHARE = 10**9


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateKeys:
    """Keys of candidates that are in order of uuid.

    ``low`` is the number of low bits, which only name the set.
    """

    keys: tuple[int, ...]
    low: int

    def decode(self, key: int) -> list[int]:
        """Return the indexes, ascending, of the set with this key."""
        size = len(self.keys)
        tail = key & ((1 << self.low) - 1)
        # The tail is number * 2**n less the sum of the ranks' powers, and
        # that sum is below 2**n: rounding up gives the number back.
        powers = (-(-tail >> size) << size) - tail
        chosen = []
        while powers:
            top = powers.bit_length()
            chosen.append(size - top)
            powers ^= 1 << (top - 1)
        return chosen


def make_keys(
    candidates: Sequence[Candidate], missing: Amounts,
    capacity: Amounts | None, ) -> CandidateKeys:
    """Return the keys of candidates that are in order of uuid.

    Surplus is counted over the classes of ``capacity``, each amount as a
    share of it; without ``capacity`` over the missing classes, as they are.
    """
    weights = (
        dict.fromkeys(missing, 1) if capacity is None
        else {name: SHARE // c for name, c in capacity.items() if c > 0})
    surpluses = [
        sum([weights[name] * amount
             for name, amount in candidate.resources.items()
             if name in weights]) for candidate in candidates]
    size = len(candidates)
    low = size + size.bit_length()
    number = low + sum(surpluses).bit_length()
    cost = number + size.bit_length()
    every = (1 << number) + (1 << size)
    return CandidateKeys(
        tuple(
            (candidate.cost << cost) + (surplus << low) + every
            - (1 << (size - 1 - rank))
            for rank, (candidate, surplus) in enumerate(
                zip(candidates, surpluses, strict=True))),
        low, )
