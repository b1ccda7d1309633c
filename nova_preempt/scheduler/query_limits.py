# SPDX-License-Identifier: Apache-2.0
"""Bounds the time in which a scheduler answers questions.

The time is counted where the work is done, so that it is the same however many
processes of the API ask, and whether or not they still wait for the answer.
"""

import contextlib
import functools
import math
import threading
import time

from nova_preempt import exceptions
from nova_preempt.core import client_allowance

# Fifty flavors take 2.5 s on 40 hosts, and grow with them. Half a minute lets
# people and dashboards ask as they like; a tenth of the time is what one loop
# may cost other users of the same scheduler.
_TERMS = client_allowance.Terms(at_once_s=30, share=0.1, most_running=2)

# No question takes longer. The API waits for 30 s by default.
_LONGEST_S = 20


class Questions:
    """Lets projects ask, or tells them to come later. For many threads."""

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._allowance = client_allowance.Allowance(_TERMS)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def asking(self, project_id, is_bounded):
        """Count the time of a question of a project.

        It gives a function that goes through items for as long as there is
        time.

        :param is_bounded: False: it may ask whatever it has asked before
        :raises TooManyQuestions:
        """
        began_s = self._clock()
        in_time = functools.partial(self._in_time, began_s)
        if not is_bounded:
            yield in_time
            return
        with self._lock:
            wait_s = math.ceil(self._allowance.begin(project_id, began_s))
        if wait_s:
            raise exceptions.TooManyQuestions(
                'The project has asked the scheduler for too much of its '
                f'time; it may ask again in {wait_s} s.', wait_s)
        try:
            yield in_time
        finally:
            with self._lock:
                self._allowance.end(project_id, began_s, self._clock())

    def _in_time(self, began_s, items):
        for item in items:
            if self._clock() - began_s >= _LONGEST_S:
                raise exceptions.NoAnswer(
                    f'The scheduler had no answer within {_LONGEST_S} s; '
                    'ask about fewer flavors at once.')
            yield item
