# SPDX-License-Identifier: Apache-2.0
"""A small model of hosts that are powered off and on."""

import dataclasses

from nova_preempt.core.energy import power_steps
from nova_preempt.core.model import SECOND

#: How long a host takes from power on to the first report of its service.
BOOT_S = 90
#: How long a service counts as up after its last report.
UP_S = 60


@dataclasses.dataclass
class Sighting:
    """Memory of a process about a host while its state lasts."""

    state: str
    since_us: int
    reported_us: int
    closed_us: int | None = None
    asked_us: int | None = None


@dataclasses.dataclass
class ModelHost:
    """A host, its controller, its compute service and its record.

    :ivar boots_us: when it has booted, None if it is off or hangs
    :ivar goes_off_us: when it has shut down
    :ivar disabled_us: since when its service is disabled, if it is
    """

    state: str = power_steps.ON
    since_us: int = 0
    boots: int = 0
    boot_s: float | None = None
    idle_intervals: int = 0
    servers: int = 0
    aggregates: frozenset = frozenset()
    is_powered: bool = True
    boots_us: int | None = 0
    goes_off_us: int | None = None
    reported_us: int = 0
    disabled_us: int | None = None
    is_ours: bool = False
    up: bool = True
    answers: bool = True
    hangs: bool = False

    @property
    def disabled(self):
        return self.disabled_us is not None

    @property
    def is_operators(self):
        return self.disabled and not self.is_ours

    def power(self, is_on, now_us):
        if is_on != self.is_powered:
            self.is_powered, self.goes_off_us = is_on, None
            self.boots_us = None if self.hangs or not is_on else (
                now_us + BOOT_S * SECOND)

    def pass_time(self, now_us):
        if self.goes_off_us is not None and self.goes_off_us <= now_us:
            self.power(False, now_us)
        if self.is_powered and self.boots_us is not None and (
                self.boots_us <= now_us):
            self.reported_us = now_us
        self.up = now_us - self.reported_us < UP_S * SECOND
