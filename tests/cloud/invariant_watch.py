# SPDX-License-Identifier: Apache-2.0
"""Calls nova-preempt-manage verify in a loop."""

import json
import subprocess
import threading

PAUSE_S = 30
#: Kinds of problems that must not be even while services are away, and servers
#: are booted and deleted; all others are looked for at the end.
ALWAYS = frozenset(('over_capacity', 'broken_invariant'))


class InvariantWatch(threading.Thread):
    """Calls verify until it is stopped, also during outages.

    :param command: of verify, as a shell takes it
    :param environment: of the command, None for that of this process
    :ivar looks: how many times verify could tell
    :ivar away: how many times it could not
    :ivar faults: what must not be, as text
    """

    def __init__(self, command, environment=None):
        super().__init__(name='invariants', daemon=True)
        self._command = f'{command} --json'
        self._environment = environment
        self._ended = threading.Event()
        self.looks = self.away = 0
        self.faults = []

    def run(self):
        while not self._ended.wait(PAUSE_S):
            self.look()

    def stop(self):
        """End, after the look that is under way."""
        self._ended.set()
        self.join()

    def look(self):
        """Call verify once."""
        done = subprocess.run(
            self._command, shell=True, check=False, text=True,
            capture_output=True, env=self._environment)
        # 2, or a signal: a service that verify asks is away.
        if done.returncode not in (0, 1):
            self.away += 1
            return
        self.looks += 1
        problems = map(json.loads, done.stdout.splitlines())
        self.faults += [f'{problem["kind"]}: {problem["text"]}'
                        for problem in problems if problem['kind'] in ALWAYS]
