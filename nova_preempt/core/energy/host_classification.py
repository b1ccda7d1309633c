# SPDX-License-Identifier: Apache-2.0

"""Classifies hosts for the power decision (power_plan.py)."""

import dataclasses
import math

from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps

#: States from which hosts are woken.
OFF = (power_steps.ASLEEP, power_steps.EMPTYING)
#: How long before the start of a reservation its hosts are left on: powering
#: off and on would take most of it.
HORIZON_S = 900


@dataclasses.dataclass(frozen=True, slots=True)
class OffHost:
    """A host that is off, or switching, and will be on if it is needed.

    :param why_late: why it will not be on in time, '' if it will
    :param patience_s: how long it may take until it is on
    """

    why_late: str = ''
    patience_s: float = 0.0


def off(state: str, age_s: float, boots: int, *, lead_s: float,
        queue_s: float, stopped: str = '') -> OffHost:
    """Tell whether a host that is not on will be on in time.

    A state that lasts longer than its steps take is stuck: its controller has
    died, or its boot hangs.

    :param age_s: how long it has been in the state
    :param boots: how many boots were begun beyond the first
    :param lead_s: see energy_observation.Options.lead_s()
    :param queue_s: how long other needed hosts wake before it
    :param stopped: why it is not switched now, '' if it is
    """
    patience_s = lead_s + (0 if state == power_steps.WAKING else queue_s)
    most_s = {
        power_steps.WAKING: lead_s, power_steps.ASLEEP: math.inf,
    }.get(state, power_steps.EMPTY_CHECKS_S + power_steps.POWER_OFF_TIMEOUT_S
          + power_steps.POWER_SWITCH_TIMEOUT_S + lead_s)
    if stopped or state == power_steps.FAILED:
        return OffHost(stopped or 'it has failed to boot', patience_s)
    if state == power_steps.WAKING and 0 < boots < power_steps.BOOTS:
        return OffHost('its first boot has failed', patience_s)
    if age_s > most_s:
        return OffHost(f'it has been {state} for {age_s:.0f} s', patience_s)
    return OffHost('', patience_s)


def is_usable(state: str, *, up: bool, disabled: bool) -> bool:
    """Tell whether a host is on and open to servers."""
    return state == power_steps.ON and up and not disabled


def is_on(state: str, *, usable: bool, operators: bool) -> bool | None:
    """Tell whether a host counts as on, None if it does not count at all.

    :param operators: whether an operator has disabled it
    """
    if operators:
        return None
    if usable or state == power_steps.WAKING:
        return True
    return False if state == power_steps.ASLEEP else None


def is_busy(state: str, idle_intervals: int, *, servers: bool,
            looked_at: bool, promised: bool) -> bool:
    """Tell whether a host that is on is in use, as far as is known yet.

    :param servers: whether the last look has seen any
    :param looked_at: whether it was up before the last look, or there was
        none yet
    :param promised: whether a request waits for it
    """
    if promised:
        return True
    if state == power_steps.WAKING or idle_intervals:
        return False
    # A host that came up after the last look has no known servers.
    return servers or looked_at


def reserved(start: power_plan.ReservationStart | None, horizon_s: float,
        per_minute: int, step_s: float, *, on: bool) -> tuple[bool, bool]:
    """Tell whether a host is reserved, and whether it is due; see PowerHost.

    :param start: of its next reservation
    :param horizon_s: how far ahead reservations count
    """
    if start is None:
        return False, False
    due = bool(power_plan.due((start,), per_minute, step_s))
    # A host that is off need not wake before it is due.
    return due or (on and start.in_s <= horizon_s), due
