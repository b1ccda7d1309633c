# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the command, identified by pid and start time.

Each service leads a session, by which its workers are found even if the leader
has died. A pid alone may be reused.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time

from minicloud import layout as layouts

POLL_S = 0.1


@dataclasses.dataclass(frozen=True)
class Process:
    """:ivar started: clock ticks since the boot of the machine"""

    pid: int
    started: int

    def members(self):
        """Return pids of the process and its children that live."""
        leader = _stat(self.pid)
        if leader is not None and leader.started != self.started:
            return []
        return [stat.pid for stat in _all_stats()
                if stat.session == self.pid and stat.state not in 'ZX'
                and stat.started >= self.started]

    def state(self):
        """Return the leader's state: 'running', 'frozen' or 'gone'."""
        leader = _stat(self.pid)
        if (leader is None or leader.started != self.started
                or leader.state in 'ZX'):
            return 'gone'
        return 'frozen' if leader.state == 'T' else 'running'

    def signal(self, number):
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """Kill the process and its children."""
        while self.members():
            self.signal(signal.SIGKILL)
            time.sleep(POLL_S)

    def stop(self, patience_s):
        """Terminate it, and kill it after patience_s."""
        self.signal(signal.SIGCONT)
        if self.state() != 'gone':
            os.kill(self.pid, signal.SIGTERM)
        until = time.monotonic() + patience_s
        while self.members() and time.monotonic() < until:
            time.sleep(POLL_S)
        self.kill()


class Records:
    """The processes of services, recorded in files.

    :param directory: of the files
    """

    def __init__(self, directory):
        self._directory = pathlib.Path(directory)

    def find(self, name):
        """Return the Process of a service, None if it was never started."""
        try:
            return Process(**json.loads(self._file(name).read_text()))
        except FileNotFoundError:
            return None

    def names(self):
        return sorted(file.stem for file in self._directory.glob('*.json'))

    def start(self, name, command, env, log):
        with open(log, 'ab') as output:
            popen = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, cwd='/', start_new_session=True)
        process = Process(popen.pid, _stat(popen.pid).started)
        try:
            layouts.write_whole(self._file(name), json.dumps(
                dataclasses.asdict(process)))
        except BaseException:
            # NOTE: without a record it could not be stopped later.
            popen.kill()
            raise
        return process

    def forget(self, name):
        self._file(name).unlink(missing_ok=True)

    def _file(self, name):
        return self._directory / f'{name}.json'


@dataclasses.dataclass(frozen=True)
class _Stat:
    pid: int
    state: str
    session: int
    started: int


def _stat(pid):
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # NOTE: the name, in parentheses, may contain anything. The rest are the
    # fields from the third on, see proc(5).
    fields = text.rpartition(')')[2].split()
    return _Stat(pid, fields[0], int(fields[3]), int(fields[19]))


def _all_stats():
    pids = (entry.name for entry in pathlib.Path('/proc').iterdir()
            if entry.name.isdigit())
    stats = (_stat(int(pid)) for pid in pids)
    return [stat for stat in stats if stat is not None]
