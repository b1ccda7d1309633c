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
"""When hosts of reservations are given up, and which come back.

Many hosts that are down at once have one cause: a message bus or a database
that is away, a switch, an operator who disables a rack. None of them is given
up for it. Where one was, it returns to the reservation whose servers still
run on it.
"""

from collections.abc import Collection, Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Brake:
    """How many hosts may be down before that is taken for one cause.

    :ivar percent: of all hosts that matter
    :ivar hosts: so many may in any case, as long as most are up
    """

    percent: float
    hosts: int

    def why(self, down: int, total: int) -> str:
        """Return why no host is given up now, '' if each may be.

        Where half of all are down, or more, there is nobody to tell the one
        from the other, nor enough hosts to take their place.

        :param down: how many hosts are down, disabled or gone
        :param total: out of how many
        """
        allowed = max(self.hosts, int(total * self.percent / 100))
        most = down >= total or (down > 1 and 2 * down >= total)
        if down and (most or down > allowed):
            return (
                f"{down} of {total} hosts are down, disabled or gone at once"
            )
        return ""


def down_since(
    before: Mapping[str, float],
    down: Collection[str],
    now_s: float,
    *,
    braked: bool,
) -> dict[str, float]:
    """Return since when each of these hosts counts as down.

    What was seen while the brake was on says nothing: afterwards each host
    has its full time again to come back.

    :param before: what this returned the last time
    """
    return {
        name: now_s if braked else before.get(name, now_s) for name in down
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Return:
    """That a host comes back, in place of another if that is named."""

    host: str
    instead_of: str | None = None


def returns(
    quantity: int,
    held: Mapping[str, int],
    former: Mapping[str, int],
) -> tuple[Return, ...]:
    """Return which hosts that a reservation has lost come back to it.

    Those on which its servers run: first where one is missing, then in place
    of one on which none does, and else on top, for its project was promised
    hosts of its own.

    :param held: how many of its servers run on each host that it has
    :param former: the same of those that it has lost, and that are free
    """
    missing = quantity - len(held)
    unused = sorted(
        (name for name, count in held.items() if not count), reverse=True
    )
    found = []
    for name, count in sorted(
        former.items(), key=lambda item: (-item[1], item[0])
    ):
        if not count:
            continue
        if missing > 0:
            missing -= 1
            found.append(Return(name))
        else:
            found.append(Return(name, unused.pop() if unused else None))
    return tuple(found)
