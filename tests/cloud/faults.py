# SPDX-License-Identifier: Apache-2.0
"""Faults of services while they are in use."""

import datetime
import signal
import sys
import time

from minicloud import steps

from tests.cloud import test_faults

EVERY_S = 60
LENGTH_S = 8
PAUSE_S = EVERY_S - LENGTH_S
# One of each lives as long as the run, so that its memory can be watched.
SPARED = ('nova-preempt-scheduler-2', 'nova-preempt-engine-2',
          'nova-preempt-api')
WAYS = {'kill': test_faults.KILLED, 'stop': test_faults.STOPPED,
        'freeze': test_faults.FROZEN}


class Absences:
    """Records when services were down."""

    # What follows from one may take so much longer.
    AFTERWARDS_S = 20

    def __init__(self):
        self._all = []
        self._since = None

    def begin(self):
        self._since = time.monotonic()

    def end(self):
        self._all.append((self._since, time.monotonic()))
        self._since = None

    def since(self, moment):
        """Return whether a service was down since then, or just before."""
        return self._since is not None or any(
            end + self.AFTERWARDS_S >= moment for _start, end in self._all)


class Faults:
    """Something happens to a service, again and again."""

    def __init__(self, run):
        self._run = run
        self._random = run.random('faults')
        names = run.place.services.names()
        self._all = [(way, name) for way, found in WAYS.items()
                     for name in found if name in names
                     and name not in SPARED]

    def work(self):
        way, name = self._random.choice(self._all)
        self._run.counts['faults'] += 1
        sys.stdout.write(
            f'{datetime.datetime.now():%H:%M:%S} {way} {name}\n')
        sys.stdout.flush()
        manager = self._run.place.services
        self._run.faults += [f'{other} has ended, and nobody has ended it'
                             for other in self._run.place.ended()]
        self._run.absences.begin()
        try:
            if way == 'freeze':
                manager.signal(name, signal.SIGSTOP)
            else:
                {'kill': manager.kill, 'stop': manager.stop}[way](name)
            time.sleep(LENGTH_S)
            if way == 'freeze':
                manager.signal(name, signal.SIGCONT)
            else:
                manager.start(name)
        except steps.StepFailed as exc:
            self._run.faults.append(f'{way} {name}: {exc}')
        finally:
            self._run.absences.end()
