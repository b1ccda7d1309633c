# SPDX-License-Identifier: Apache-2.0
"""Reads hosts' power draw from the configured sources, in order."""

import dataclasses
import datetime
import math
import threading
from typing import Protocol

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import plugins
from nova_preempt.conf import energy
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.power import power_errors

LOG = logging.getLogger(__name__)

NAMESPACE = 'nova_preempt.power_source'
# The most by which the clock of a meter may be ahead.
FUTURE_SLACK_S = 60
#: Timeout of the answer of a source, or of Ironic.
TIMEOUT_S = 10
# How much longer a source may take to time out by itself.
_GRACE_S = 2


def utcnow():
    """Return now, with a time zone."""
    return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """The power draw of a host at a time.

    :ivar host: its node name
    :ivar watts: any object until it is checked
    :ivar at: a datetime with a time zone; None, until it is checked, if the
        source has no time
    """

    host: str
    watts: float
    at: datetime.datetime | None


class Source(Protocol):
    """A power source, made with (conf, conf.energy)."""

    def read(self, hosts):
        """Return {host: Reading} of the hosts that it knows.

        It takes TIMEOUT_S at most.

        :param hosts: node names
        :raises SourceError: it does not answer, or its answer is invalid
        """


def from_epoch(value):
    """Return seconds since the epoch as a datetime, None if invalid."""
    try:
        return datetime.datetime.fromtimestamp(
            float(value), datetime.timezone.utc)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def find_fault(reading, now):
    """Return why a reading is invalid, None if it is valid."""
    fault = _find_fault_of_watts(reading.watts)
    if fault is not None:
        return fault
    if reading.at is None:
        return 'the reading has no timestamp'
    if reading.at.tzinfo is None:
        return 'the timestamp of the reading has no time zone'
    age_s = (now - reading.at).total_seconds()
    if age_s > efficiency_ranking.MAX_AGE_S:
        return (f'the reading is {age_s:.0f} s old, more than '
                f'{efficiency_ranking.MAX_AGE_S} s')
    if age_s < -FUTURE_SLACK_S:
        return f'the timestamp is {-age_s:.0f} s in the future'
    return None


def _find_fault_of_watts(watts):
    if isinstance(watts, bool) or not isinstance(watts, (int, float)):
        return f'{watts!r} is not a number of watts'
    try:
        watts = float(watts)
    except OverflowError:
        return 'the number of watts is too large'
    if not math.isfinite(watts):
        return f'{watts} W is not a finite number'
    if watts < 0:
        return f'{watts:g} W is below 0'
    if watts > efficiency_ranking.MAX_WATTS:
        return f'{watts:g} W is more than {efficiency_ranking.MAX_WATTS:g} W'
    return None


class PowerReader:
    """Reads the sources of [energy]sources, one after the other.

    A source is asked for the hosts that the sources before it lack. A source
    that fails or hangs is skipped after TIMEOUT_S, and not called again before
    its last call has ended. Each fault is logged when it begins, and when it
    is over.

    :param sources: [(name, Source)], by default those of the configuration
    :param clock: returns a datetime with a time zone
    """

    def __init__(self, conf, sources=None, clock=utcnow):
        options = conf[energy.GROUP]
        if sources is None:
            sources = [(name, plugins.load(
                NAMESPACE, name, f'[{energy.GROUP}]sources names')(
                conf, options)) for name in options.sources]
        self._sources = [(name, _Bounded(
            source, TIMEOUT_S + _GRACE_S)) for name, source in sources]
        self._clock = clock
        self._faults = {}

    def read(self, hosts):
        """Return {host: Reading} of the hosts that any source knows."""
        found = {}
        for name, source in self._sources:
            missing = [host for host in hosts if host not in found]
            if not missing:
                break
            found.update(self._read(name, source, missing))
        return found

    def _read(self, name, source, hosts):
        try:
            read = source.read(hosts)
        # NOTE: a source may be a plugin: its failure is not ours.
        except Exception as exc:  # noqa: BLE001
            self._note(name, None, str(exc) or type(exc).__name__)
            return {}
        self._note(name, None, None)
        now = self._clock()
        good = {}
        for host in hosts:
            reading = read.get(host)
            if reading is None:
                continue
            fault = find_fault(reading, now)
            self._note(name, host, fault)
            if fault is None:
                good[host] = reading
        return good

    def _note(self, source, host, fault):
        """Log the begin and the end of a fault, not changes of its text."""
        key = (source, host)
        of_host = '' if host is None else f' of host {host}'
        if fault is None:
            if self._faults.pop(key, None) is not None:
                LOG.info('The power source %(source)s%(host)s gives readings '
                         'again.', {'source': source, 'host': of_host})
        elif key not in self._faults:
            LOG.warning('No reading from the power source %(source)s'
                        '%(host)s: %(fault)s',
                        {'source': source, 'host': of_host, 'fault': fault})
            self._faults[key] = fault


class _Bounded:
    """Bounds the time of a source's answer.

    A timeout of HTTP bounds neither the look-up of a name nor a slow stream of
    bytes, so each call has a thread that may be abandoned.
    """

    def __init__(self, source, timeout_s):
        self._source = source
        self._timeout_s = timeout_s
        self._thread = None

    def read(self, hosts):
        if self._thread is not None and self._thread.is_alive():
            raise power_errors.SourceError('it has not answered yet')
        answer = []
        self._thread = threading.Thread(
            target=self._call, args=(hosts, answer), daemon=True)
        self._thread.start()
        self._thread.join(self._timeout_s)
        if not answer:
            raise power_errors.SourceError(
                f'no answer within {self._timeout_s} s')
        result, exc = answer[0]
        if exc is not None:
            raise exc
        return result

    def _call(self, hosts, answer):
        try:
            answer.append((self._source.read(hosts), None))
        except Exception as exc:  # noqa: BLE001 - raised by read()
            answer.append((None, exc))
