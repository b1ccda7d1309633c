# SPDX-License-Identifier: Apache-2.0
"""Events of a trace, and parsing of their values."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any, TypeAlias

from nova_preempt.core.model import SECOND

#: Limit of times: some 300 years.
LATEST_US = 10**10 * SECOND
#: Limit of amounts of a resource class.
MOST = 2**31 - 1
#: Limit of the servers of a job.
MOST_SERVERS = 100_000

_NUMBER = re.compile(r'[-+]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?')


class TraceError(Exception):
    """A trace cannot be read; the message says where and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Boot:
    """Request for a server.

    :param at_us: time since the beginning of the trace
    :param resources: {resource class: amount}, None if the flavor defines it
    :param flavor: its name, '' for none
    :param class_name: class of service, as the trace names it
    :param duration_us: run time, None if an End follows
    :param group: server group, '' for none
    :param reservation: id of the reservation that it names, '' for none
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
    """Request for a reservation of hosts; times are in whole seconds.

    :param hosts: number of hosts
    :param start_s: earliest start, None for now
    :param end_s: latest end, None for no limit
    :param duration_s: None for all the time from start to end
    :param query: a query of core.reservation.host_query, or None
    :param end_action: for its servers, '' for the default of the options
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
    """Deletion of a server, or cancellation of a reservation."""

    at_us: int
    id: str


#: Any event of a trace.
Event: TypeAlias = Boot | Reserve | End


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """Size of a whole machine, for traces that have shares of it.

    A server with more processors than a machine is split into several.
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
        """Convert shares of a machine to {resource class: amount}."""
        found = {'VCPU': round_up(cpu * self.vcpus),
                 'MEMORY_MB': round_up(memory * self.memory_mb),
                 'DISK_GB': round_up(disk * self.disk_gb)}
        return {name: amount for name, amount in found.items() if amount}


def round_up(value: float) -> int:
    """Round up to a whole number, but ignore rounding errors.

    0.1 * 30 gives 3, not 4.
    """
    return -int(-round(value, 6) // 1)


def number(value: object, name: str, least: float = 0.0,
           most: float = float(MOST)) -> float:
    """Parse a finite number within bounds.

    :param value: text or a number
    :raises ValueError: the message has the name and the bounds
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
    """Parse a whole number within bounds, see number()."""
    if isinstance(value, str) and re.fullmatch('[-+]?[0-9]{1,40}',
                                               value.strip()):
        # Not through a float, which has 53 bits.
        value = int(value)
    found = number(value, name, least, most)
    if found != int(found):
        raise ValueError(f'{name} is {_short(value)}, not a whole number')
    return int(found)


def microseconds(value: object, name: str, unit: int = SECOND) -> int:
    """Parse a time or a duration.

    :param unit: microseconds per unit of the value
    """
    return round(number(value, name, most=LATEST_US / unit) * unit)


def text(value: object, name: str, may_be_empty: bool = False,
         longest: int = 255) -> str:
    """Check a text, such as a name."""
    if not isinstance(value, str) or len(value) > longest or (
            not value and not may_be_empty):
        least = 0 if may_be_empty else 1
        raise ValueError(f'{name} is {_short(value)}, not a text of {least} '
                         f'to {longest} characters')
    return value


def _short(value: object) -> str:
    shown = repr(value) if not isinstance(value, int) or (
        abs(value) < 10**30) else 'a very large number'
    return shown if len(shown) <= 50 else shown[:47] + '...'
