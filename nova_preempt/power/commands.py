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
"""Commands of operators, run without a shell."""

import os
import re
import signal
import subprocess

from nova_preempt.power import errors
from nova_preempt.power import hosts_file as power_hosts

_SHOWN_CHARACTERS = 300


def run(host, value, timeout_s):
    """Run a command to its end; its exit status and what it printed.

    :param value: a list of arguments or one string, with {host}
    :raises PowerError: it cannot be run, or ran for too long
    """
    try:
        arguments = power_hosts.command(value, host)
        with subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, encoding='utf-8', errors='replace',
                # So that what it has started can be ended with it.
                start_new_session=True) as process:
            try:
                output, _none = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired as exc:
        raise errors.PowerError(
            host, f'{arguments[0]} ran for more than {timeout_s} s') from exc
    except (OSError, ValueError, errors.HostsFileError) as exc:
        raise errors.PowerError(host, exc) from exc
    return process.returncode, output


def do(host, value, timeout_s):
    """Run a command that has to succeed.

    :raises PowerError: it did not
    """
    status, output = run(host, value, timeout_s)
    if status:
        raise errors.PowerError(host, describe(value, status, output))


def describe(value, status, output):
    """What a command did, for an operator."""
    name = value.split()[0] if isinstance(value, str) else value[0]
    return (f'{name} ended with {status}: '
            + ' '.join(output.split())[-_SHOWN_CHARACTERS:])


def is_on(host, value, pattern, timeout_s):
    """What a command says of a host.

    :param pattern: a regular expression that its output matches somewhere if
        the host is on; with an empty one the exit status tells, 0 or 1
    :raises PowerError: it does not tell
    """
    status, output = run(host, value, timeout_s)
    if pattern and status == 0:
        return re.search(pattern, output) is not None
    if not pattern and status in (0, 1):
        return status == 0
    raise errors.PowerError(host, describe(value, status, output))
