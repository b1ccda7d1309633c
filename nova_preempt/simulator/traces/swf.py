# SPDX-License-Identifier: Apache-2.0
"""The Standard Workload Format 2.2 of the Parallel Workloads Archive.

18 fields a job, -1 for what is not known. A job with more processors than a
machine becomes several servers that have nothing to do with each other.
"""

from collections.abc import Iterable

from nova_preempt.core.model import SECOND
from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import trace_model

_FIELDS = 18
_KB_A_MB = 1024


class Reader(line_reader.LineReader):
    """Reads it."""

    comment = b';'

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        fields = line.split()
        if len(fields) != _FIELDS:
            raise ValueError(f'{len(fields)} fields instead of '
                             f'{_FIELDS}')
        job = str(trace_model.whole(fields[0], 'job'))
        at_us = trace_model.microseconds(fields[1], 'submit time')
        run_s = _known(fields[3], 'run time', float(10**10))
        vcpus = int(_known(fields[7], 'requested processors')
                    or _known(fields[4], 'allocated processors') or 0)
        if not run_s:
            return self.skip('did not run')
        if not vcpus:
            return self.skip('no processors')
        memory_kb = (_known(fields[9], 'requested memory', 2.0**41)
                     or _known(fields[6], 'used memory', 2.0**41) or 0)
        user = int(_known(fields[11], 'user') or 0)
        queue = _known(fields[14], 'queue')
        duration_us = round(run_s * SECOND)

        def boot(id: str, vcpus: int) -> trace_model.Boot:
            resources = {'VCPU': vcpus}
            if memory_kb:
                resources['MEMORY_MB'] = trace_model.round_up(
                    memory_kb * vcpus / _KB_A_MB)
            return trace_model.Boot(
                at_us, id, resources, '',
                'queue' if queue is None else f'queue-{int(queue)}',
                duration_us, f'user-{user}')

        return line_reader.split_job(boot, job, vcpus, self.scale.vcpus)


def _known(text: str, name: str, most: float = float(trace_model.MOST)
           ) -> float | None:
    """Return a number, None if it is unknown."""
    found = trace_model.number(text, name, -1, most)
    return None if found < 0 else found
