# SPDX-License-Identifier: Apache-2.0
"""The memory of services, while they run."""

import contextlib
import os
import pathlib
import statistics
import threading
import time

EVERY_S = 20
PAGE = os.sysconf('SC_PAGE_SIZE')
MB = 2 ** 20
# What a process needs at first is not what it loses.
WARM_S = 180


class Memory(threading.Thread):
    """Samples the resident memory of services and their workers.

    :param manager: a minicloud.services.Services
    :ivar read: {(name, pid): [(seconds since the start, bytes)]}
    """

    def __init__(self, manager, names):
        super().__init__(name='memory', daemon=True)
        self._manager = manager
        self._names = names
        self._ended = threading.Event()
        self._start = time.monotonic()
        self.read = {}

    def run(self):
        while not self._ended.wait(EVERY_S):
            for name in self._names:
                process = self._manager.process(name)
                if process is None or process.state() != 'running':
                    continue
                resident = sum(map(_resident, process.members()))
                self.read.setdefault((name, process.pid), []).append(
                    (time.monotonic() - self._start, resident))

    def stop(self):
        self._ended.set()
        self.join()

    def report(self):
        """Return a line for each process that ran long enough.

        What it grew by is told of each half of that time: a process that
        loses memory does so in the second as in the first.
        """
        for (name, pid), read in sorted(self.read.items()):
            warm = [(at_s, size) for at_s, size in read
                    if at_s - read[0][0] >= WARM_S]
            half = len(warm) // 2
            if half < 3:
                continue
            slopes = ', then '.join(
                f'{_slope(part) * 3600 / MB:+.1f}'
                for part in (warm[:half], warm[half:]))
            yield (f'{name:26} {pid:>8}: {warm[0][1] / MB:6.1f} MB at '
                   f'{warm[0][0] / 60:.0f} min, {warm[half][1] / MB:6.1f} MB '
                   f'at {warm[half][0] / 60:.0f} min, '
                   f'{warm[-1][1] / MB:6.1f} MB at '
                   f'{warm[-1][0] / 60:.0f} min, at most '
                   f'{max(size for _at, size in read) / MB:.1f} MB, '
                   f'{slopes} MB an hour')


def _slope(read):
    return statistics.linear_regression(*zip(*read, strict=True)).slope


def _resident(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[
            1]) * PAGE
    return 0
