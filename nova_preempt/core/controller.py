# SPDX-License-Identifier: Apache-2.0
"""What is done over time is decided by controllers, each a function:

    step(observed, memory, now_us) -> Step

``observed`` is how the cloud and the database are now: a value, or a view with
indexes, so that a step looks at what changed and not at all there is.
``memory`` is the little that a controller keeps from one step to the next: a
frozen value. ``now_us`` is the time in whole microseconds.

The engine and the simulator observe, step and carry out the intents; neither
decides anything. A controller goes by what is so now, not by what it intended
before: an intent that was carried out only in part, or not at all since the
process died, is seen at the next step. Equal input gives an equal step.
"""

import dataclasses
from typing import Generic, TypeVar

Intent = TypeVar('Intent')
Memory = TypeVar('Memory')


@dataclasses.dataclass(frozen=True, slots=True)
class Step(Generic[Intent, Memory]):
    """The answer of a controller at a time.

    :ivar intents: frozen values, to be carried out in this order
    :ivar memory: to be given to the next step
    :ivar wake_at_us: when to step again though nothing has changed, None if
        there is no need to
    """

    intents: tuple[Intent, ...]
    memory: Memory
    wake_at_us: int | None = None
