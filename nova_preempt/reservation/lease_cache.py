# SPDX-License-Identifier: Apache-2.0
"""Keeps the leases of the lease service at hand for the scheduler.

A thread of its own asks the service again and again; a request reads what was
answered last, which is one attribute, and waits for nothing. Two exceptions,
both bounded: the requests that come before the first answer, and one that
names a reservation which the last answer does not show as active.
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

# How long a request waits for an answer, at most.
WAIT_S = 5

# How far apart two questions are, at least, however many requests ask.
PAUSE_S = 1

#: How often the lease service is asked what is reserved.
REFRESH_S = 5
#: For how long its last answer holds where it cannot be reached.
MAX_AGE_S = 60
# How far apart two complaints are, at least.
COMPLAIN_S = 60

# How many leases may be asked after at a time.
_MANY = 20


@dataclasses.dataclass(frozen=True)
class _CachedLeases:
    found: object       # what the service has answered
    leases: core.Leases
    read_s: float       # when the question was asked, monotonic


class _RefreshThread:
    """Asks again and again, and at once where somebody waits for it.

    :param ask: called with the leases to ask after, too
    :ivar first: is set once the first question is answered
    """

    def __init__(self, ask):
        self.pid = os.getpid()
        self._ask = ask
        self._lock = threading.Lock()
        self._urgent = threading.Event()
        self._stopped = False
        # Of the question that comes next:
        self._asked_after = set()
        self._answered = self.first = threading.Event()
        threading.Thread(target=self._run, name='leases', daemon=True).start()

    def ask_soon(self, lease_ids):
        """Return an Event of a question that has not been asked yet."""
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
            # One that asks in a loop is not served faster than this.
            if self._urgent.wait(REFRESH_S) and not self._stopped:
                time.sleep(PAUSE_S)
        self._answered.set()


class LeaseCache:
    """The leases, kept fresh in the background.

    :param service: what answers, see nova_preempt.reservation.lease_service
    :param options: [reservation] of the configuration
    :param clock: returns now in seconds since the epoch
    :param monotonic: returns seconds that only ever grow
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
        self._error = ''          # why the last question had no answer
        self._thread = None
        self._started_s = None

    # -- what requests call ----------------------------------------------

    def view(self):
        """A core LeaseView of what is known. Waits only for the very first."""
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
        """The core Answer for a request that names these leases.

        Before it is refused, the service is asked once more: the lease may
        just have been made, or may just have begun.
        """
        view = self.view()
        answer = view.answer(lease_ids, project_id)
        if answer.reason and self.refresh(lease_ids):
            answer = self.view().answer(lease_ids, project_id)
        if answer.reason and self._error and answer.known:
            answer = dataclasses.replace(
                answer, known=False,
                reason=answer.reason + ' (The lease service does not answer; '
                                       'that was its last word.)')
        return answer

    def refresh(self, lease_ids=()):
        """Have the service asked now, together with whoever else wants it.

        :param lease_ids: leases to ask after, even if they have ended
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
        """Start the thread, once in each process: a fork leaves it behind."""
        if self._is_started():
            return
        with _LOCK:
            if not self._is_started():
                self._started_s = self._monotonic()
                self._thread = _RefreshThread(self._ask)

    def _is_started(self):
        return self._thread is not None and self._thread.pid == os.getpid()

    def stop(self):
        """Ask no more."""
        if self._thread is not None:
            self._thread.stop()

    def _ask(self, lease_ids):
        """Ask the service once and keep its answer."""
        before, began_s = self._error, self._monotonic()
        try:
            found = self._service.fetch()
            self._known = _CachedLeases(found, self._leases(found, lease_ids),
                                 began_s)
            self._error = ''
        except Exception as exc:  # noqa: BLE001 (whatever a plugin raises)
            self._error = _line(exc)
        # Not above, where oslo.log would add the exception once more.
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
        # The next change forgets them again.
        return leases.updated(
            lease if lease.status == core.ACTIVE
            else dataclasses.replace(lease, hosts=frozenset())
            for lease in past if lease) if any(past) else leases

    def _complain(self):
        """Say that nobody answers, at most once in COMPLAIN_S."""
        now_s = self._monotonic()
        with _LOCK:
            if self._complained_s is not None and (
                    now_s - self._complained_s < COMPLAIN_S):
                return
            self._complained_s = now_s
        known = self._known
        LOG.warning(
            'The lease service %(name)s does not answer (%(error)s). What is '
            'known of reservations is %(age)s; [reservation]on_unavailable is '
            '%(mode)s.', {
                'name': self._name, 'error': self._error or 'no answer yet',
                'age': (f'{now_s - known.read_s:.0f} s old' if known
                        else 'nothing'),
                'mode': 'fail_open' if self._fail_open else 'fail_closed'})


def _line(exc):
    """Return the first line of an error; a database's has many."""
    return f'{type(exc).__name__}: {str(exc).partition(chr(10))[0]}'


# -- one for the process -----------------------------------------------------

_LOCK = threading.Lock()

_current = None


def is_used(conf):
    """Whether reservations are obeyed at all: whether the filter is on."""
    return 'ReservationFilter' in conf.filter_scheduler.enabled_filters


def current(conf):
    """The LeaseCache that filter, weigher and manager of a process share.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    """
    global _current
    if _current is None:
        made = LeaseCache(load_service(conf), conf.reservation)
        with _LOCK:
            _current = _current or made
    return _current


def start(conf, clock):
    """Begin anew, before the first request asks.

    :param clock: returns now in seconds since the epoch
    """
    forget()
    known = current(conf)
    known.clock = clock
    known.start()


def forget():
    """Let current() make a new one."""
    global _current
    if _current is not None:
        _current.stop()
    _current = None


def load_service(conf):
    """The lease service of [reservation]lease_service.

    :raises InvalidConfiguration: there is none of this name
    """
    return plugins.load(NAMESPACE, conf.reservation.lease_service,
                        '[reservation]lease_service is')(conf)
