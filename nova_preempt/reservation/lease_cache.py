# SPDX-License-Identifier: Apache-2.0
"""Caches the leases of the lease service for the scheduler.

A thread polls the service; a request reads the last answer, an attribute,
without waiting. Two kinds wait for a bounded time: requests that come before
the first answer, and a request that names a reservation which is not active
in the last answer.
"""

import dataclasses
import os
import threading
import time

from oslo_log import log as logging

from nova_preempt import plugins
from nova_preempt.core.reservation import leases as core

LOG = logging.getLogger(__name__)

NAMESPACE = 'nova_preempt.lease_service'

# How long a request waits for an answer at most.
WAIT_S = 5

# The least time between two polls, however many requests ask.
PAUSE_S = 1

#: How often the lease service is polled.
REFRESH_S = 5
#: For how long its last answer holds where it cannot be reached.
MAX_AGE_S = 60
# The least time between two warnings.
COMPLAIN_S = 60

# How many leases one poll may ask for by id.
_MANY = 20


@dataclasses.dataclass(frozen=True)
class _CachedLeases:
    found: object       # the answer of the service
    leases: core.Leases
    read_s: float       # when the poll began, monotonic


class _RefreshThread:
    """Polls in a loop, and at once where a request waits for it.

    :param ask: called with the leases to ask for by id
    :ivar first: is set after the first poll
    """

    def __init__(self, ask):
        self.pid = os.getpid()
        self._ask = ask
        self._lock = threading.Lock()
        self._urgent = threading.Event()
        self._stopped = False
        # Of the next poll:
        self._asked_after = set()
        self._answered = self.first = threading.Event()
        threading.Thread(target=self._run, name='leases', daemon=True).start()

    def ask_soon(self, lease_ids):
        """Return an Event that is set after a poll that begins from now on."""
        with self._lock:
            if len(self._asked_after) < _MANY:
                self._asked_after.update(lease_ids)
            self._urgent.set()
            return self._answered

    def stop(self):
        self._stopped = True
        self._urgent.set()

    def _run(self):
        while not self._stopped:
            with self._lock:
                self._urgent.clear()
                answered, self._answered = self._answered, threading.Event()
                lease_ids, self._asked_after = self._asked_after, set()
            self._ask(lease_ids)
            answered.set()
            # NOTE: bounds the rate where requests ask in a loop.
            if self._urgent.wait(REFRESH_S) and not self._stopped:
                time.sleep(PAUSE_S)
        self._answered.set()


class LeaseCache:
    """The leases, refreshed in the background.

    :param service: see nova_preempt.reservation.lease_service
    :param options: [reservation] of the configuration
    :param clock: returns now in seconds since the epoch
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, service, options, clock=time.time,
                 monotonic=time.monotonic):
        self.clock = clock
        self._service = service
        self._fail_open = options.on_unavailable == 'fail_open'
        self._name = options.lease_service
        self._monotonic = monotonic
        self._known = None
        self._complained_s = None
        self._error = ''          # why the last poll failed
        self._thread = None
        self._started_s = None

    # -- what requests call ----------------------------------------------

    def view(self):
        """Return a core LeaseView; waits only for the very first poll."""
        self.start()
        if self._known is None and not self._error:
            self._thread.first.wait(
                max(0, self._started_s + WAIT_S - self._monotonic()))
        known = self._known
        fresh = known is not None and (
            self._monotonic() - known.read_s <= MAX_AGE_S)
        if not fresh:
            self._complain()
        return core.LeaseView(known and known.leases, fresh,
                              self._fail_open, int(self.clock()))

    def answer(self, lease_ids, project_id):
        """Return the core Answer for a request that names these leases.

        Before a refusal the service is polled once more, as the lease may
        just have been made, or have begun.
        """
        view = self.view()
        answer = view.answer(lease_ids, project_id)
        if answer.reason and self.refresh(lease_ids):
            answer = self.view().answer(lease_ids, project_id)
        if answer.reason and self._error and answer.known:
            answer = dataclasses.replace(
                answer, known=False,
                reason=answer.reason + ' (The lease service does not answer; '
                                       'its last answer was used.)')
        return answer

    def refresh(self, lease_ids=()):
        """Poll the service now, together with other requests that wait.

        :param lease_ids: leases to ask for, even if they have ended
        :returns: whether it has answered in time; False at once if it did
            not the last time
        """
        self.start()
        if self._error:
            return False
        return (self._thread.ask_soon(lease_ids).wait(WAIT_S)
                and not self._error)

    # -- the thread ------------------------------------------------------

    def start(self):
        """Start the thread, once in each process: a fork has none."""
        if self._is_started():
            return
        with _LOCK:
            if not self._is_started():
                self._started_s = self._monotonic()
                self._thread = _RefreshThread(self._ask)

    def _is_started(self):
        return self._thread is not None and self._thread.pid == os.getpid()

    def stop(self):
        """Stop polling."""
        if self._thread is not None:
            self._thread.stop()

    def _ask(self, lease_ids):
        """Poll the service once and store its answer."""
        before, began_s = self._error, self._monotonic()
        try:
            found = self._service.fetch()
            self._known = _CachedLeases(found, self._leases(found, lease_ids),
                                 began_s)
            self._error = ''
        except Exception as exc:  # noqa: BLE001 (whatever a plugin raises)
            self._error = _line(exc)
        # NOTE: not above, where oslo.log would append the traceback.
        if self._error:
            self._complain()
        elif before:
            LOG.info('The lease service %s answers again.', self._name)

    def _leases(self, found, lease_ids):
        known = self._known
        if known is not None and known.found is found:
            leases = known.leases
        else:
            leases = (found if isinstance(found, core.Leases)
                      else core.Leases(found))
        past = [self._service.get(lease_id) for lease_id in sorted(lease_ids)
                if leases.get(lease_id) is None]
        # The next change drops them again.
        return leases.updated(
            lease if lease.status == core.ACTIVE
            else dataclasses.replace(lease, hosts=frozenset())
            for lease in past if lease) if any(past) else leases

    def _complain(self):
        """Log that the service does not answer, once in COMPLAIN_S."""
        now_s = self._monotonic()
        with _LOCK:
            if self._complained_s is not None and (
                    now_s - self._complained_s < COMPLAIN_S):
                return
            self._complained_s = now_s
        known = self._known
        LOG.warning(
            'The lease service %(name)s does not answer (%(error)s). The '
            'known reservations are %(age)s; [reservation]on_unavailable is '
            '%(mode)s.', {
                'name': self._name, 'error': self._error or 'no answer yet',
                'age': (f'{now_s - known.read_s:.0f} s old' if known
                        else 'none'),
                'mode': 'fail_open' if self._fail_open else 'fail_closed'})


def _line(exc):
    """Return the first line of an error; a database's has many."""
    return f'{type(exc).__name__}: {str(exc).partition(chr(10))[0]}'


# -- one for the process -----------------------------------------------------

_LOCK = threading.Lock()

_current = None


def is_used(conf):
    """Return whether the filter is on, and so reservations are obeyed."""
    return 'ReservationFilter' in conf.filter_scheduler.enabled_filters


def current(conf):
    """Return the LeaseCache that a process's filter and weigher share.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    """
    global _current
    if _current is None:
        made = LeaseCache(load_service(conf), conf.reservation)
        with _LOCK:
            _current = _current or made
    return _current


def start(conf, clock):
    """Restart the cache before the first request.

    :param clock: returns now in seconds since the epoch
    """
    forget()
    known = current(conf)
    known.clock = clock
    known.start()


def forget():
    """Make current() return a new cache."""
    global _current
    if _current is not None:
        _current.stop()
    _current = None


def load_service(conf):
    """Return the lease service of [reservation]lease_service.

    :raises InvalidConfiguration: it does not exist
    """
    return plugins.load(NAMESPACE, conf.reservation.lease_service,
                        '[reservation]lease_service is')(conf)
