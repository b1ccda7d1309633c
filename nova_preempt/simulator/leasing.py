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
"""The parts of reservations put together."""

from __future__ import annotations

from collections.abc import Callable

from nova_preempt.simulator import clearing
from nova_preempt.simulator import endings
from nova_preempt.simulator import keeper
from nova_preempt.simulator import moving
from nova_preempt.simulator import power
from nova_preempt.simulator import reservations
from nova_preempt.simulator.parts import Parts
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.setting import Setting


def make(parts: Parts, setup: Setting, ends: endings.Endings,
         decide: Callable[[Server], None],
         not_coming: Callable[[Server], None],
         fleet: Callable[[], power.Power | None]
         ) -> tuple[reservations.Reservations, moving.Moves]:
    """Return what grants them, and what moves servers for them.

    For the parameters see keeper.Cloud, moving.Moves and
    clearing.Clearing.
    """
    book = reservations.Book(parts, setup)
    moves = moving.Moves(parts, decide, ends.not_wanted)
    parts.report.reserved = book.hold
    ends.requests.reserved = book.find
    cloud = keeper.Cloud(parts, book, ends, moves, fleet)
    return reservations.Reservations(
        parts, book, keeper.Keeper(cloud), cloud,
        clearing.Clearing(parts, book, ends, not_coming).begin), moves
