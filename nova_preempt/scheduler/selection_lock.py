# SPDX-License-Identifier: Apache-2.0
"""Lock that lets one thread at a time choose victims.

That is a courtesy, and not what keeps servers from ending twice: Placement
does, and the database. So nobody waits without end for a turn: whoever takes
long, with a database or a service that does not answer, loses it to the next
one, who may lose the race for a victim to them at worst.
"""

import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# A choice among 10,000 hosts takes a second or two.
LONGEST_S = 10


class SelectionLock:
    """Lock around the selection of victims, for a bounded time.

    :param longest_s: how long a turn is at most, while somebody waits for it
    :param monotonic: the clock
    :param wait: waits for a threading.Condition for so many seconds
    """

    def __init__(self, longest_s=LONGEST_S, monotonic=time.monotonic,
                 wait=threading.Condition.wait):
        self._longest_s = longest_s
        self._monotonic = monotonic
        self._wait = wait
        self._changed = threading.Condition()
        self._turn = None         # whose it is
        self._since = None        # when it began

    def acquire(self):
        """Wait for a turn. Returns what release() is given."""
        turn = object()
        with self._changed:
            while self._turn is not None:
                left_s = self._since + self._longest_s - self._monotonic()
                if left_s <= 0:
                    LOG.warning('A request has been choosing victims for more '
                                'than %s s; others choose beside it. Is there '
                                'a cell, a database or a service that does '
                                'not answer?', self._longest_s)
                    break
                self._wait(self._changed, left_s)
            self._turn = turn
            self._since = self._monotonic()
        return turn

    def release(self, turn):
        """End a turn, if no other has begun."""
        with self._changed:
            if self._turn is turn:
                self._turn = None
                self._changed.notify()
