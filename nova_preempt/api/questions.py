# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Questions that keep a scheduler busy, bounded for each project.

Each process of the API has accounts of its own.
"""

import contextlib
import math
import threading
import time

import webob.exc

from nova_preempt.api import policy
from nova_preempt.core import allowance

# Fifty flavors take 2.5 s on 40 hosts, and grow with them. Half a minute lets
# people and dashboards ask as they like; a tenth of the time is what one loop
# may cost other users of the same scheduler.
_TERMS = allowance.Terms(
    at_once_s=30, share=0.1, most_debt_s=10, most_running=2)


class Questions:
    """Lets projects ask, or tells them to come later. For many threads."""

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._allowance = allowance.Allowance(_TERMS)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def asking(self, call):
        """Bound a question of anybody but administrators.

        :param call: a router.Call
        :raises HTTPTooManyRequests:
        """
        if call.allows(policy.EXPLAIN_DETAILS):
            yield
            return
        project_id = call.context.project_id
        with self._lock:
            began_s = self._clock()
            wait_s = math.ceil(self._allowance.begin(project_id, began_s))
        if wait_s:
            raise webob.exc.HTTPTooManyRequests(
                'The project has asked the scheduler for too much of its '
                f'time; it may ask again in {wait_s} s.',
                headers={'Retry-After': str(wait_s)})
        try:
            yield
        finally:
            with self._lock:
                self._allowance.end(project_id, began_s, self._clock())
