# SPDX-License-Identifier: Apache-2.0
"""Runs steps in parallel, each after those that it depends on."""

from collections.abc import Callable
import concurrent.futures
import dataclasses
import subprocess
import time

WORKERS = 3
TAIL_LINES = 25
CHECK_S = 1


class StepFailed(Exception):
    """:ivar log: the file that says why, None if the message does"""

    def __init__(self, message, log=None):
        super().__init__(message)
        self.log = log

    def tail(self):
        """Return the end of the log."""
        if self.log is None or not self.log.exists():
            return ''
        lines = self.log.read_text(errors='replace').splitlines()
        return '\n'.join(f'    {line}' for line in lines[-TAIL_LINES:])


@dataclasses.dataclass(frozen=True)
class Step:
    """:ivar after: names of steps that have to be done before"""

    name: str
    action: Callable[[], None]
    after: tuple[str, ...] = ()


def call(command, env, log, good=(0,), check=None):
    """Run a command; raise StepFailed unless its exit status is good.

    :param check: called every CHECK_S; if it raises, the command is killed
    """
    with open(log, 'wb') as output, subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, cwd='/') as process:
        try:
            while _runs(process):
                if check is not None:
                    check()
        except BaseException:
            process.kill()
            raise
    if process.returncode not in good:
        raise StepFailed(
            f'{command[0]} exits with {process.returncode}', log)


def _runs(process):
    try:
        process.wait(CHECK_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def run(steps, say=print):
    """Run all steps, and print how many seconds each took.

    :raises StepFailed, OSError: of the first step that failed, after the
        running ones have ended
    """
    waiting = list(steps)
    done = set()
    failed = None
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        running = {}
        while running or (waiting and not failed):
            for step in [] if failed else list(waiting):
                if len(running) < WORKERS and done.issuperset(step.after):
                    waiting.remove(step)
                    running[pool.submit(_take, step)] = step
            if not running:
                raise AssertionError(
                    f'steps wait for each other: {waiting}')
            finished, _ = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                step = running.pop(future)
                try:
                    say(f'{step.name:32} {future.result():6.1f} s')
                except (StepFailed, OSError) as exc:
                    say(f'{step.name:32} FAILED: {exc}')
                    failed = failed or exc
                done.add(step.name)
    if failed:
        raise failed


def _take(step):
    start = time.monotonic()
    step.action()
    return time.monotonic() - start
