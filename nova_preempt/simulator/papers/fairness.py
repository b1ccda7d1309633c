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
"""How well promises were kept, and how fairly.

As M. Carvalho et al. (JISA 11, 2020) evaluate schedulers. All are exact.
"""

from collections.abc import Collection, Iterable
import fractions


def gini(values: Collection[fractions.Fraction]) -> fractions.Fraction:
    """Return how unequal values are, from 0 (all the same) to 1.

    0 too where there are none, or all are 0.
    """
    total = sum(values, fractions.Fraction())
    if not total:
        return total
    number = len(values)
    weighted = sum(
        (
            (2 * rank - number - 1) * value
            for rank, value in enumerate(sorted(values), start=1)
        ),
        fractions.Fraction(),
    )
    return weighted / (number * total)


def fulfilment(
    availabilities: Collection[fractions.Fraction],
    promised: fractions.Fraction,
) -> fractions.Fraction:
    """Return the share of requests that ran for as long as was promised.

    1 where there are none.
    """
    if not availabilities:
        return fractions.Fraction(1)
    kept = sum(1 for each in availabilities if each >= promised)
    return fractions.Fraction(kept, len(availabilities))


def credit(
    availability: fractions.Fraction,
    promised: fractions.Fraction,
    schedule: Iterable[tuple[fractions.Fraction, fractions.Fraction]],
) -> fractions.Fraction:
    """Return which part of its price a request gets back.

    :param schedule: (below which part of the promise, which part of the
        price); where several apply the largest counts
    """
    return max(
        (
            share
            for below, share in schedule
            if availability < below * promised
        ),
        default=fractions.Fraction(0),
    )


def deficits(
    availabilities: Collection[fractions.Fraction],
    promised: fractions.Fraction,
) -> list[fractions.Fraction]:
    """Return what lacks of the promise where it was broken, ascending."""
    return sorted(
        promised - each for each in availabilities if each < promised
    )
