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

"""How well the promises of whole classes are kept now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses

from nova_preempt.core.classes.clocks import Clocks
from nova_preempt.core.classes.clocks import Kind
from nova_preempt.core.classes.clocks import Times
from nova_preempt.core.classes.margin import Classes
from nova_preempt.core.classes.margin import QosClass

RUNNING = "running"
WAITING = "waiting"
STARTING = "starting"
ASIDE = "aside"

_STATES: Mapping[Kind, str] = {
    Kind.QUEUED: WAITING,
    Kind.ALLOCATING: STARTING,
    Kind.RUNNING: RUNNING,
    Kind.EVICTED: WAITING,
    Kind.ASIDE: ASIDE}
STATES = (RUNNING, WAITING, STARTING, ASIDE)


@dataclasses.dataclass(slots=True)
class Kept:
    """How well the promise of a class is kept now.

    ``servers``: how many are in which of STATES; ``times``: the sum over
    them, since each was asked for; ``below``: how many have run for less of
    their time than was promised.
    """

    servers: dict[str, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(STATES, 0))
    times: Times = dataclasses.field(default_factory=Times)
    below: int = 0


def kept(
    classes: Classes, servers: Iterable[tuple[QosClass, Clocks]], now_us: int
) -> dict[str, Kept]:
    """Return {class name: Kept} of all classes.

    :param servers: of a class each; of those that have ended nothing counts
    """
    found = {qos.name: Kept() for qos in classes}
    for qos, clocks in servers:
        state = _STATES.get(clocks.kind) if clocks.kind is not None else None
        if state is None:
            continue
        of, times = found[qos.name], clocks.at(now_us)
        of.servers[state] += 1
        of.times = Times(
            of.times.running_us + times.running_us,
            of.times.waiting_us + times.waiting_us,
            of.times.binding_us + times.binding_us)
        promised = qos.availability
        of.below += (
            times.running_us * promised.denominator
            < times.total_us * promised.numerator)
    return found
