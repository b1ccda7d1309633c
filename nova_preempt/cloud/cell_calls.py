# SPDX-License-Identifier: Apache-2.0
"""The only way to the database of a cell, with a time limit.

A database that hangs is not one that refuses: Nova's objects wait for it
without end. Each call runs in a thread of its own, and the caller waits for no
longer than the limit. While a call to a cell hangs, other calls to it fail at
once; now and then one of them runs all the same, and nobody waits for it.
Nova's scatter-gather has a limit as well, but each caller waits for all of it,
and the calls that hang fill a pool that Nova's own scheduling uses.

The periodic readings of whole cells are in nova_preempt.cloud.cells.
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

# For what reads much and has nobody wait: the limit of Nova's own lists.
LONG_S = 60

# How long after a call that hangs one of the others runs, twice as long each
# time, and how many do at most: each keeps a thread and a connection of Nova's
# pool.
PAUSE_S = 30
LONGEST_PAUSE_S = 600
MOST_TRIALS = 8


# How long a processor was busy for calls of the current thread, in others.
_elsewhere = threading.local()


def processor_time():
    """time.thread_time() with what the calls of this thread have taken."""
    return time.thread_time() + getattr(_elsewhere, 'took_s', 0.0)


class CellAway(exception.NovaException):
    """A cell does not answer in time.

    Not Nova's CellTimeout, which is a NotFound: nothing is known to be gone.
    """

    msg_fmt = 'Cell %(cell)s does not answer within %(limit)s s'


@contextlib.contextmanager
def opened(cell, read_deleted='no'):
    """An administrator's context for this cell, without any time limit."""
    context = nova_context.get_admin_context(read_deleted=read_deleted)
    with nova_context.target_cell(context, cell) as cell_context:
        yield cell_context


def start_thread(run):
    threading.Thread(target=run, name='cell call', daemon=True).start()


@dataclasses.dataclass(eq=False)
class _Call:
    """A call that runs in a thread.

    :ivar late: from when on its cell counts as one that hangs
    :ivar is_trial: whether its cell hangs, and nobody waits for the answer
    :ivar took_s: that it has kept a processor busy
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
    """The calls to one cell and whether it answers.

    :ivar running: the calls that have not returned
    :ivar answered: when the last one began that was answered
    :ivar told: whether the log says that the cell hangs
    """

    running: list = dataclasses.field(default_factory=list)
    answered: float = float('-inf')
    told: bool = False


class CellCalls:
    """Calls functions for cells.

    :param limit_s: how long a caller waits at most
    :param monotonic: the clock
    :param start: runs a function in a thread
    :param wait: waits for a threading.Condition for so many seconds
    :param consequence: what it means that a cell hangs, for the log
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
        """Call a function with the context of a cell; return its result.

        :param args, kwargs, limit_s: see gather()
        :raises CellAway: it does not return in time
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
        """{uuid of a cell: what the function returns there, or its error}.

        :param args, kwargs: of the function, after the context
        :param limit_s: how long is waited for all of them together, None for
            as long as usual
        """
        cells = {cell.uuid: cell for cell in cells}
        answers = self.ask(
            cells.values(),
            lambda _cell, context: function(context, *args, **kwargs),
            limit_s, read_deleted)
        for uuid, answer in answers.items():
            if isinstance(answer, Exception) and not isinstance(
                    answer, CellAway):
                LOG.warning('Cell %(cell)s cannot be read: %(exc)s',
                            {'cell': cells[uuid].identity, 'exc': answer})
        return answers

    def ask(self, cells, function, limit_s=None, read_deleted='no',
            ended=lambda cell, answer: None):
        """Return the same as gather(), without a word in the log.

        :param function: given a cell and its context
        :param ended: given a cell and what the function has returned, or its
            error, whenever that is
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
        """The _Call, None if none is to be made now."""
        with self._lock:
            now = self._monotonic()
            state = self._states.setdefault(cell.uuid, _State())
            hangs = self._hangs(state, now)
            if hangs and not self._is_trial_due(state, now):
                return None
            # A caller in a hurry does not judge the cell.
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
        """Return the uuids of cells that do not answer."""
        with self._lock:
            now = self._monotonic()
            return {uuid for uuid, state in self._states.items()
                    if self._hangs(state, now)}

    def _hangs(self, state, now):
        """Whether it owes an answer for too long, and has given none since."""
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
        return CellAway(cell=cell.identity, limit=limit_s)

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
                return            # its connection broke: no sign of life
            state.answered = max(state.answered, call.began)
            if state.told and not self._hangs(state, now):
                state.told = False
                LOG.info('Cell %s answers again.', call.cell.identity)


# Its state is of the process: what hangs for one caller hangs for all.
_OF_PROCESS = CellCalls()

call = _OF_PROCESS.call
gather = _OF_PROCESS.gather
