# SPDX-License-Identifier: Apache-2.0
"""The trace of Alibaba's cluster of 2018.

The tables container_meta (8 columns) and batch_task (9), which is told apart
by that. A processor is 100, memory is in hundredths of a machine's.
"""

from collections.abc import Iterable

from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import trace_model

_COLUMNS = {7: 8, 8: 9}        # by the number of commas
_CORE = 100.0
_WHOLE = 100.0


class Reader(line_reader.LineReader):
    """Reads either table; a container is there to the end of the trace."""

    def __init__(self, scale: trace_model.MachineSize) -> None:
        super().__init__(scale)
        self._containers: set[str] = set()

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        count = _COLUMNS.get(line.count(','))
        if count is None:
            raise ValueError(f'the line has {line.count(",") + 1} columns; '
                             'container_meta has 8, batch_task 9')
        cells = line_reader.cells(line, count)
        return self._container(cells) if count == 8 else self._task(cells)

    def _container(self, cells: list[str]) -> Iterable[trace_model.Event]:
        id = trace_model.text(cells[0], 'container_id')
        at_us = trace_model.microseconds(cells[2], 'time_stamp')
        resources = self._resources(cells[5], 'cpu_request', cells[7],
                                    'mem_size')
        if id in self._containers:
            # There is a line for each change of it.
            return ()
        if not resources:
            return self.skip('no resources')
        self._containers.add(id)
        return (trace_model.Boot(at_us, id, resources, '', 'container', None,
                                 trace_model.text(cells[3], 'app_du', True)),)

    def _task(self, cells: list[str]) -> Iterable[trace_model.Event]:
        job = trace_model.text(cells[2], 'job_name')
        name = f'{job}.{trace_model.text(cells[0], "task_name")}'
        if not cells[5] or not cells[6]:
            return self.skip('did not run')
        start_us = trace_model.microseconds(cells[5], 'start_time')
        end_us = trace_model.microseconds(cells[6], 'end_time')
        count = trace_model.whole(cells[1] or '1', 'instance_num', 1,
                                  trace_model.MOST_SERVERS)
        resources = self._resources(cells[7], 'plan_cpu', cells[8], 'plan_mem')
        if not start_us or end_us <= start_us:
            # 0 stands for what is not known.
            return self.skip('did not run')
        if not resources:
            return self.skip('no resources')
        return (trace_model.Boot(start_us, f'{name}.{nth}', resources, '',
                                 'batch',
                                 end_us - start_us) for nth in range(count))

    def _resources(self, cpu: str, cpu_name: str, memory: str, memory_name: str
                   ) -> dict[str, int]:
        cores = trace_model.number(cpu or '0', cpu_name) / _CORE
        share = trace_model.number(memory or '0', memory_name,
                                   most=_WHOLE) / _WHOLE
        found = self.scale.resources(0, share)
        if cores:
            found['VCPU'] = trace_model.round_up(cores)
        return found
