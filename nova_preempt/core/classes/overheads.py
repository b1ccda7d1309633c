# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How long it takes to get a request back to a host, as far as is known.

A mean that follows what was measured last, one for each kind: a server whose
volumes are elsewhere is back sooner than one whose image has to be copied.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
import dataclasses
import fractions

from nova_preempt.core.classes.margin import OVERHEAD_S
from nova_preempt.core.model import SECOND

#: How much the last sample counts.
WEIGHT = fractions.Fraction(3, 10)


def smoothed_us(mean_us: int, sample_us: int) -> int:
    """Return the mean after one more sample.

    An exponentially weighted moving average, in whole microseconds.
    """
    part, whole = WEIGHT.as_integer_ratio()
    return mean_us + part * (sample_us - mean_us) // whole


@dataclasses.dataclass(frozen=True)
class Overheads:
    """The mean overhead of each kind of request, in microseconds.

    ``default_us`` is that of kinds of which none was measured. ``means_us``:
    {kind, such as (flavor, what its disk is backed by): mean}.
    """

    default_us: int = OVERHEAD_S * SECOND
    means_us: Mapping[Hashable, int] = dataclasses.field(default_factory=dict)

    def of(self, kind: Hashable) -> int:
        """Return the mean of a kind, in microseconds."""
        return self.means_us.get(kind, self.default_us)

    def seen(self, kind: Hashable, took_us: int) -> Overheads:
        """Return them after one more was measured.

        The first of a kind counts in full. Less than no time, for a clock was
        set back meanwhile, tells nothing.
        """
        if took_us < 0:
            return self
        known_us = self.means_us.get(kind)
        mean_us = (
            took_us if known_us is None else smoothed_us(known_us, took_us))
        return dataclasses.replace(
            self, means_us={**self.means_us, kind: mean_us})
