# SPDX-License-Identifier: Apache-2.0
"""The traces of Google's clusters, of 2011 and of 2019.

Amounts are shares of the largest machine. A task that was evicted there is
submitted again under its old name: it is one server, which the cloud that is
simulated treats as it likes.
"""

from collections.abc import Iterable
from typing import Any

from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_model

#: Later than the end of a trace, as both say it.
_AFTER = 2**63 - 1
_NO_RESOURCES = 'no resources'

# Event types.
_SUBMIT_2011 = 0
_ENDS_2011 = frozenset((3, 4, 5, 6))        # fail, finish, kill, lost
_LAST_2011 = 8
_SUBMIT_2019 = 0
_ENDS_2019 = frozenset((5, 6, 7, 8))
_TYPES_2019 = ('SUBMIT', 'QUEUE', 'ENABLE', 'SCHEDULE', 'EVICT', 'FAIL',
               'FINISH', 'KILL', 'LOST', 'UPDATE_PENDING', 'UPDATE_RUNNING')

# Of 2019: the class up to, but not with, a priority.
_TIERS = ((100, 'free'), (116, 'best-effort'), (120, 'mid'),
          (360, 'production'))
_MONITORING = 'monitoring'


class _Tasks(line_reader.LineReader):
    """Reads tasks; keeps only the names of tasks that have not ended.

    A task that was evicted or has failed is submitted again.
    """

    may_return = True

    def __init__(self, scale: trace_model.MachineSize) -> None:
        super().__init__(scale)
        self._there: set[str] = set()

    def submitted(self, boot: trace_model.Boot) -> tuple[trace_model.Boot,
                                                         ...]:
        if boot.id in self._there:
            return ()
        if not boot.resources:
            return self.skip(_NO_RESOURCES)
        self._there.add(boot.id)
        return (boot,)

    def ended(self, at_us: int, id: str) -> tuple[trace_model.End, ...]:
        if id not in self._there:
            return ()
        self._there.remove(id)
        return (trace_model.End(at_us, id),)


class Reader2011(_Tasks):
    """Reads the table task_events of version 2.

    Classes are those of M. Carvalho et al. (JISA 11, 2020): gold above a
    priority of 8, silver from 2, bronze below.
    """

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        cells = line_reader.cells(line, 13)
        at_us = _time(cells[0], 'time')
        kind = trace_model.whole(cells[5], 'event type', most=_LAST_2011)
        if at_us is None:
            return self.skip('after the trace')
        job = trace_model.whole(cells[2], 'job ID', most=_AFTER)
        id = f'{job}-{trace_model.whole(cells[3], "task index")}'
        if kind in _ENDS_2011:
            return self.ended(at_us, id)
        if kind != _SUBMIT_2011:
            return ()
        priority = trace_model.whole(cells[8], 'priority', most=11)
        shares = [trace_model.number(cell or '0', name, most=1.0)
                  for cell, name in zip(
                      cells[9:12], ('CPU request', 'memory request',
                                    'disk space request'), strict=True)]
        return self.submitted(trace_model.Boot(
            at_us, id, self.scale.resources(*shares), '', _class(priority),
            None, trace_model.text(cells[6], 'user', True)))


def _class(priority: int) -> str:
    if priority > 8:
        return 'gold'
    return 'silver' if priority >= 2 else 'bronze'


class Reader2019(_Tasks):
    """Reads InstanceEvents of version 3, as JSON lines.

    Classes are the tiers of M. Tirmazi et al. (EuroSys 2020), by priority.
    What runs within an alloc set uses the resources of that.
    """

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        item = native_format.load(line)
        at_us = _time(item.get('time', 0), 'time')
        kind = _kind(item.get('type', 0))
        if at_us is None:
            return self.skip('after the trace')
        if _whole(item, 'alloc_collection_id'):
            return self.skip('within an alloc set')
        collection = _whole(item, 'collection_id')
        id = f'{collection}-{_whole(item, "instance_index")}'
        if kind in _ENDS_2019:
            return self.ended(at_us, id)
        if kind != _SUBMIT_2019:
            return ()
        asked = item.get('resource_request') or {}
        if not isinstance(asked, dict):
            raise ValueError('resource_request is not an object')
        return self.submitted(trace_model.Boot(
            at_us, id, self.scale.resources(*(
                trace_model.number(asked.get(key) or 0, key, most=1.0)
                for key in ('cpus', 'memory'))),
            '', _tier(_whole(item, 'priority'))))


def _whole(item: dict[str, Any], key: str) -> int:
    return trace_model.whole(item.get(key) or 0, key, most=_AFTER)


def _kind(value: object) -> int:
    if value in _TYPES_2019:
        return _TYPES_2019.index(value)
    return trace_model.whole(value, 'type', most=len(_TYPES_2019) - 1)


def _tier(priority: int) -> str:
    for below, name in _TIERS:
        if priority < below:
            return name
    return _MONITORING


def _time(value: object, name: str) -> int | None:
    """Return microseconds, None after the end of the trace."""
    found = trace_model.whole(value, name, most=_AFTER)
    if found != _AFTER and found > trace_model.LATEST_US:
        raise ValueError(f'{name} is {found} microseconds; it must be up to '
                         f'{trace_model.LATEST_US}')
    return None if found == _AFTER else found
