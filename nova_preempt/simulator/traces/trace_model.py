# SPDX-License-Identifier: Apache-2.0
"""Events of a trace, in any format."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any, TypeAlias

from nova_preempt.core.model import SECOND

#: No event is later than this: some 300 years.
LATEST_US = 10**10 * SECOND
#: No amount of a resource class is larger.
MOST = 2**31 - 1
#: No job becomes more servers.
MOST_SERVERS = 100_000

_NUMBER = re.compile(r'[-+]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?')


class TraceError(Exception):
    """A trace cannot be read; the message says where and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Boot:
    """A request for a server.

    :param at_us: when, from the beginning of the trace
    :param resources: {resource class: amount}, None where the flavor says it
    :param flavor: its name, '' for none
    :param class_name: of the class of service, as the trace calls it
    :param duration_us: how long it has to run, None until there is an End
    :param group: its server group, '' for none
    :param reservation: the one that it names, '' for none
    """

    at_us: int
    id: str
    resources: Mapping[str, int] | None = None
    flavor: str = ''
    class_name: str = 'normal'
    duration_us: int | None = None
    project: str = ''
    group: str = ''
    reservation: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Reserve:
    """A request to reserve hosts; times are in whole seconds.

    :param hosts: how many
    :param start_s: when they are wanted at the earliest, None for at once
    :param end_s: until when at the latest, None for any time
    :param duration_s: for how long, None for all the time from start to end
    :param query: which hosts, as core.reservation.host_query has it
    :param end_action: what happens to its servers then, '' for what the
        operator says
    """

    at_us: int
    id: str
    hosts: int = 1
    start_s: int | None = None
    end_s: int | None = None
    duration_s: int | None = None
    query: Any = None
    project: str = ''
    end_action: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """An owner deletes a server, whatever has become of it.

    Or gives up a reservation.
    """

    at_us: int
    id: str


#: What there is in a trace.
Event: TypeAlias = Boot | Reserve | End


@dataclasses.dataclass(frozen=True, slots=True)
class MachineSize:
    """Size of a machine, for traces that have only shares of one.

    A server that asks for more processors than a machine has becomes several.
    """

    vcpus: int = 64
    memory_mb: int = 262144
    disk_gb: int = 2048

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 0 < value <= MOST:
                raise ValueError(
                    f'{field.name} of a machine is {value}; it must be from '
                    f'1 to {MOST}')

    def resources(self, cpu: float = 0.0, memory: float = 0.0,
                  disk: float = 0.0) -> dict[str, int]:
        """Return the resources of these shares, {class: amount}."""
        found = {'VCPU': round_up(cpu * self.vcpus),
                 'MEMORY_MB': round_up(memory * self.memory_mb),
                 'DISK_GB': round_up(disk * self.disk_gb)}
        return {name: amount for name, amount in found.items() if amount}


def round_up(value: float) -> int:
    """The next whole number that is not below; rounding errors are forgiven.

    0.1 * 30 is 3, and not 4.
    """
    return -int(-round(value, 6) // 1)


def number(value: object, name: str, least: float = 0.0,
           most: float = float(MOST)) -> float:
    """Return a finite number within bounds.

    :param value: as it was read: text, or a number
    :raises ValueError: it is none; the message has its name and the bounds
    """
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            raise ValueError(f'{name} is {_short(value)}, not a number')
        found = float(text)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f'{name} is {_short(value)}, not a number')
    else:
        found = value
    if not least <= found <= most:
        raise ValueError(
            f'{name} is {_short(value)}; it must be from {least:g} to '
            f'{most:g}')
    return found


def whole(value: object, name: str, least: int = 0, most: int = MOST) -> int:
    """Return a whole number within bounds, as number() does."""
    if isinstance(value, str) and re.fullmatch('[-+]?[0-9]{1,40}',
                                               value.strip()):
        # Not by way of a float, which has 53 bits.
        value = int(value)
    found = number(value, name, least, most)
    if found != int(found):
        raise ValueError(f'{name} is {_short(value)}, not an integer')
    return int(found)


def microseconds(value: object, name: str, unit: int = SECOND) -> int:
    """Return a time or a duration, in microseconds.

    :param unit: so many microseconds is what is read
    """
    return round(number(value, name, most=LATEST_US / unit) * unit)


def text(value: object, name: str, may_be_empty: bool = False,
         longest: int = 255) -> str:
    """A name."""
    if not isinstance(value, str) or len(value) > longest or (
            not value and not may_be_empty):
        least = 0 if may_be_empty else 1
        raise ValueError(f'{name} is {_short(value)}; it must be a string of '
                         f'{least} to {longest} characters')
    return value


def _short(value: object) -> str:
    shown = repr(value) if not isinstance(value, int) or (
        abs(value) < 10**30) else 'a very large number'
    return shown if len(shown) <= 50 else shown[:47] + '...'
