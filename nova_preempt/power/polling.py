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
"""Waiting until a host has been switched."""

import time

from nova_preempt.core import retrying
from nova_preempt.power import errors

_POLL_INTERVAL_S = 2


class Refused(errors.PowerError):
    """What was asked for will not happen; waiting is useless."""


class Poller:
    """Asks again until it is so.

    :param clock: returns seconds that only grow
    :param sleep: waits for some of them
    """

    def __init__(self, clock=time.monotonic, sleep=time.sleep,
                 interval_s=_POLL_INTERVAL_S):
        self._clock = clock
        self._sleep = sleep
        self._interval_s = interval_s

    def wait(self, host, is_so, timeout_s, what):
        """Return once is_so() is true.

        An error on the way counts as a no: a controller that is busy or
        restarts is back before long.

        :raises PowerError: it did not come true in time
        """
        wait = retrying.Wait(self._clock(), timeout_s, self._interval_s)
        while True:
            cause = ''
            try:
                if is_so():
                    return
            except Refused:
                raise
            except errors.PowerError as exc:
                cause = f': {exc.cause}'
            pause_s = wait.pause_s(self._clock())
            if not pause_s:
                raise errors.PowerError(
                    host, f'not {what} within {timeout_s} s{cause}')
            self._sleep(pause_s)

    def switch(self, host, is_so, ask, timeout_s, what):
        """Ask for something unless it is so, and wait until it is.

        :raises PowerError: it could not be asked for, or did not come true
        """
        if not is_so():
            ask()
            self.wait(host, is_so, timeout_s, what)
