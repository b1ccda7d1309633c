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

"""What a host lacks for a request.

The rule is Placement's: an amount of a class is granted when it lies
between ``min_unit`` and ``max_unit``, is a multiple of ``step_size``, and
``used + amount <= (total - reserved) * allocation_ratio``.
"""

from __future__ import annotations

from nova_preempt.core.model import (
    Host,
    Inventory,
    Refusal,
    RefusalCode,
    Resources,
)


def missing(request: Resources, host: Host) -> dict[str, int] | Refusal:
    """Return what must be freed on the host, by class; {} = fits now.

    Only classes with a positive lack are named. A provider that is used
    beyond its capacity lacks that excess as well. A class asked for with 0
    is not asked for. Refusals are looked for in order of class name, those
    that no server leaving could change first.

    :raises ValueError: when an amount asked for is negative
    """
    wanted = {name: request[name] for name in sorted(request)}
    if min(wanted.values(), default=0) < 0:
        msg = f"a negative amount is asked for: {wanted}"
        raise ValueError(msg)
    wanted = {name: amount for name, amount in wanted.items() if amount}
    for name, amount in wanted.items():
        refusal = _forbidden(name, amount, host.inventories.get(name))
        if refusal is not None:
            return refusal
    lack: dict[str, int] = {}
    for name, amount in wanted.items():
        capacity = host.inventories[name].capacity
        used = host.used.get(name, 0)
        short = used + amount - capacity
        if short <= 0:
            continue
        freeable = sum(c.resources.get(name, 0) for c in host.candidates)
        if short > freeable:
            return Refusal(
                RefusalCode.NO_ROOM,
                f"{name}: {amount} asked for, {capacity - used} of "
                f"{capacity} free and {freeable} held by preemptible "
                "servers",
            )
        lack[name] = short
    return lack


def _forbidden(
    name: str, amount: int, inventory: Inventory | None
) -> Refusal | None:
    """Say why Placement would refuse the amount even on an empty host."""
    if inventory is None:
        return Refusal(
            RefusalCode.NO_INVENTORY,
            f"{name}: {amount} asked for, the host has no inventory of it",
        )
    if amount < inventory.min_unit:
        return Refusal(
            RefusalCode.BELOW_MIN_UNIT,
            f"{name}: {amount} asked for, min_unit is {inventory.min_unit}",
        )
    if amount > inventory.max_unit:
        return Refusal(
            RefusalCode.ABOVE_MAX_UNIT,
            f"{name}: {amount} asked for, max_unit is {inventory.max_unit}",
        )
    if amount % inventory.step_size:
        return Refusal(
            RefusalCode.STEP_SIZE,
            f"{name}: {amount} asked for, not a multiple of step_size "
            f"{inventory.step_size}",
        )
    return None
