# SPDX-License-Identifier: Apache-2.0
"""Interface of controllers. Each is a function that decides over time:

    step(observed, memory, now_us) -> Step

``observed`` is the present state of the cloud and the database: a value, or a
view with indexes, so that a step reads changes and not the whole state.
``memory`` is a frozen value that a controller keeps from one step to the next.
``now_us`` is the time in whole microseconds.

The engine and the simulator observe, step and carry out the intents; neither
decides anything. A controller acts on the observed state and not on earlier
intents, so that an intent that was carried out in part, or not at all because
the process died, is repaired by the next step. Equal input gives an equal
step.
"""

import dataclasses
from typing import Generic, TypeVar

Intent = TypeVar('Intent')
Memory = TypeVar('Memory')


@dataclasses.dataclass(frozen=True, slots=True)
class Step(Generic[Intent, Memory]):
    """The result of one step of a controller.

    :ivar intents: frozen values that the caller carries out in this order
    :ivar memory: the value to pass to the next step
    :ivar wake_at_us: when to step again although nothing has changed, None if
        there is no need to
    """

    intents: tuple[Intent, ...]
    memory: Memory
    wake_at_us: int | None = None
