# SPDX-License-Identifier: Apache-2.0
"""Calls functions with a cell's database, with a time limit.

All access to cell databases goes through this module. Nova's objects wait
without end for a database that hangs. So each call runs in a thread of its
own, and the caller waits up to the limit. While a call to a cell hangs, other
calls to it fail at once, except for a trial call now and then, whose result no
caller waits for. Nova's scatter-gather has a limit as well, but each caller
waits for all of it, and hanging calls fill a pool that Nova's own scheduling
uses.

The periodic readings of whole cells are in nova_preempt.cloud.cell_reader.
"""

import contextlib
import dataclasses
import functools
import threading
import time

from nova import context as nova_context
from nova import exception
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Long for a query by uuid, short enough for a request that needs several.
LIMIT_S = 10

# For long readings in the background: the limit of Nova's own lists.
LONG_S = 60

# The pause before a trial call to a cell that hangs, doubled with each trial,
# and the most trials: each keeps a thread and a connection of Nova's pool.
PAUSE_S = 30
LONGEST_PAUSE_S = 600
MOST_TRIALS = 8

# The processor time of the current thread's calls, which run in other threads.
_elsewhere = threading.local()


def processor_time():
    """Return time.thread_time() plus the time of this thread's cell calls."""
    return time.thread_time() + getattr(_elsewhere, 'took_s', 0.0)


class CellDown(exception.NovaException):
    """A cell does not answer in time.

    Nova's CellTimeout is not used, for it is a NotFound.
    """

    msg_fmt = 'Cell %(cell)s did not answer within %(limit)s s'


@contextlib.contextmanager
def opened(cell, read_deleted='no'):
    """Yield an admin context for a cell, without a time limit."""
    context = nova_context.get_admin_context(read_deleted=read_deleted)
    with nova_context.target_cell(context, cell) as cell_context:
        yield cell_context


def start_thread(run):
    threading.Thread(target=run, name='cell call', daemon=True).start()


@dataclasses.dataclass(eq=False)
class _Call:
    """A call that runs in a thread.

    :ivar late: the time from which its cell counts as hanging
    :ivar is_trial: whether its cell hangs, and no caller waits for the answer
    :ivar took_s: its processor time
    """

    cell: object
    began: float
    late: float
    is_trial: bool
    done: bool = False
    answer: object = None
    took_s: float = 0.0


@dataclasses.dataclass
class _State:
    """The state of one cell.

    :ivar running: the calls that have not returned
    :ivar answered: when the last answered call began
    :ivar told: whether the hanging cell was logged
    """

    running: list = dataclasses.field(default_factory=list)
    answered: float = float('-inf')
    told: bool = False


class CellCalls:
    """Calls functions for cells in threads, with a time limit.

    :param limit_s: how long a caller waits at most
    :param monotonic: the clock
    :param start: runs a function in a thread
    :param wait: waits for a threading.Condition for so many seconds
    :param consequence: the effect of a hanging cell, for the log
    """

    def __init__(self, limit_s=LIMIT_S, monotonic=time.monotonic,
                 start=start_thread, wait=threading.Condition.wait,
                 consequence='calls to it fail at once'):
        self._limit_s = limit_s
        self._consequence = consequence
        self._monotonic = monotonic
        self._start = start
        self._wait = wait
        self._lock = threading.Lock()
        self._states = {}         # cell uuid: _State

    def call(self, cell, function, *args, limit_s=None, read_deleted='no',
             **kwargs):
        """Return the result of a function, called with a cell's context.

        :param args, kwargs, limit_s: see gather()
        :raises CellDown: the function does not return in time
        :raises Exception: what the function raises
        """
        answer, = self.ask(
            [cell], lambda _cell, context: function(context, *args, **kwargs),
            limit_s, read_deleted).values()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def gather(self, cells, function, *args, limit_s=None, read_deleted='no',
               **kwargs):
        """Return {cell uuid: the function's result there, or its exception}.

        :param args, kwargs: arguments of the function, after the context
        :param limit_s: the time limit of all calls together, None for the
            default
        """
        cells = {cell.uuid: cell for cell in cells}
        answers = self.ask(cells.values(), lambda _cell, context: function(
            context, *args, **kwargs), limit_s, read_deleted)
        for uuid, answer in answers.items():
            if isinstance(answer, Exception) and not isinstance(
                    answer, CellDown):
                LOG.warning('Cell %(cell)s cannot be read: %(exc)s',
                            {'cell': cells[uuid].identity, 'exc': answer})
        return answers

    def ask(self, cells, function, limit_s=None, read_deleted='no',
            ended=lambda cell, answer: None):
        """Return the same as gather(), without logging errors.

        :param function: called with a cell and its context
        :param ended: called with a cell and the function's result or exception
            when it returns, even after the time limit
        """
        limit_s = limit_s or self._limit_s
        changed = threading.Condition()
        answers, calls = {}, []
        for cell in cells:
            call = self._begin(cell, limit_s)
            if call is None:
                answers[cell.uuid] = self._away(cell, limit_s)
            else:
                calls.append(call)
        until = self._monotonic() + limit_s
        for call in calls:
            self._start(functools.partial(
                self._run, changed, call, read_deleted, function, ended))
        with changed:
            while any(not call.done and not call.is_trial
                      for call in calls) and (
                    left_s := until - self._monotonic()) > 0:
                self._wait(changed, left_s)
            for call in calls:
                answers[call.cell.uuid] = (
                    call.answer if call.done
                    else self._away(call.cell, limit_s))
        _elsewhere.took_s = getattr(_elsewhere, 'took_s', 0.0) + sum(
            call.took_s for call in calls)
        return answers

    def _begin(self, cell, limit_s):
        """Return a new _Call, None if the cell must not be called now."""
        with self._lock:
            now = self._monotonic()
            state = self._states.setdefault(cell.uuid, _State())
            hangs = self._hangs(state, now)
            if hangs and not self._is_trial_due(state, now):
                return None
            # A shorter limit of one caller does not make the cell hang.
            call = _Call(cell, now, now + max(limit_s, self._limit_s), hangs)
            state.running.append(call)
            return call

    @staticmethod
    def _is_trial_due(state, now):
        trials = sum(call.is_trial for call in state.running)
        pause_s = min(LONGEST_PAUSE_S, PAUSE_S * 2 ** trials)
        return trials < MOST_TRIALS and pause_s <= now - max(
            call.began for call in state.running)

    def hanging(self):
        """Return uuids of cells that do not answer."""
        with self._lock:
            now = self._monotonic()
            return {uuid for uuid, state in self._states.items()
                    if self._hangs(state, now)}

    def _hangs(self, state, now):
        """Return whether a call is late and no later call was answered."""
        return any(now >= call.late and call.began >= state.answered
                   for call in state.running)

    def _away(self, cell, limit_s):
        with self._lock:
            state = self._states[cell.uuid]
            if not state.told and self._hangs(state, self._monotonic()):
                state.told = True
                LOG.warning('Cell %(cell)s does not answer within %(limit)s '
                            's; %(consequence)s.',
                            {'cell': cell.identity, 'limit': self._limit_s,
                             'consequence': self._consequence})
        return CellDown(cell=cell.identity, limit=limit_s)

    def _run(self, changed, call, read_deleted, function, ended):
        start = time.thread_time()
        try:
            with opened(call.cell, read_deleted) as context:
                answer = function(call.cell, context)
        except Exception as exc:  # noqa: BLE001 (the caller raises it)
            answer = exc
        self._end(call, isinstance(answer, Exception))
        ended(call.cell, answer)
        with changed:
            call.took_s = time.thread_time() - start
            call.answer = answer
            call.done = True
            changed.notify_all()

    def _end(self, call, failed):
        with self._lock:
            state = self._states[call.cell.uuid]
            state.running.remove(call)
            now = self._monotonic()
            if failed and now >= call.late:
                return            # its connection broke: this is no answer
            state.answered = max(state.answered, call.began)
            if state.told and not self._hangs(state, now):
                state.told = False
                LOG.info('Cell %s answers again.', call.cell.identity)


# Shared by the process: a cell that hangs for one caller hangs for all.
_OF_PROCESS = CellCalls()

call = _OF_PROCESS.call
gather = _OF_PROCESS.gather
