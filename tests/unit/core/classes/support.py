# SPDX-License-Identifier: Apache-2.0

"""The published classes, and requests of them as they may stand."""

from __future__ import annotations

import fractions

from nova_preempt.core.classes.availability_margin import QosClass
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.model import SECOND

GOLD = QosClass("gold", 1, fractions.Fraction(1), 30)
SILVER = QosClass("silver", 2, fractions.Fraction(9, 10), 30)
BRONZE = QosClass("bronze", 3, fractions.Fraction(1, 2), 30)
CLASSES = QosClasses(GOLD, SILVER, BRONZE)


def standing(
    name: str,
    q_s: int | fractions.Fraction,
    *,
    uuid: str = "",
    yields: bool | None = None,
    classes: QosClasses = CLASSES,
) -> Standing:
    """Return a request of a class that has so many seconds left.

    :param yields: None for what it is of those that have always run
    """
    qos = classes.find(name)
    assert qos is not None
    q = int(q_s * SECOND * classes.scale)
    margin = q - qos.safety_margin_s * SECOND * classes.scale
    return Standing(
        uuid or f"{name} {q_s}",
        qos,
        0,
        q,
        margin,
        (0, qos.importance, q) if margin < 0 else (1, 0, q),
        margin >= 0 if yields is None else yields,
    )


def seconds(scaled: int) -> fractions.Fraction:
    """Return Q or a margin in seconds."""
    return fractions.Fraction(scaled, SECOND * CLASSES.scale)
