# SPDX-License-Identifier: Apache-2.0
"""Many simulations that know nothing of one another, at once."""

from collections.abc import Iterator, Mapping, Sequence
import concurrent.futures
from concurrent.futures import process
import dataclasses
import functools
import multiprocessing
from types import ModuleType
from typing import Any

from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_settings import Options
from nova_preempt.simulator.traces import trace_formats
from nova_preempt.simulator.traces.trace_model import MachineSize
from nova_preempt.simulator.traces.trace_model import TraceError

#: How often a run is begun at most, where who ran it has died.
MOST_TRIES = 3


class RunsLost(Exception):
    """Runs have come to nothing again and again; the message says why."""


class NotInstalled(Exception):
    """The message names the extra."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A run of a sweep; its worker has the files of the trace.

    :param names: {"trace", "policy", "seed", ...}, to tell it by
    """

    names: Mapping[str, Any]
    setting: CloudSetting
    options: Options
    trace_format: str
    paths: tuple[str, ...]
    scale: MachineSize
    seed: int
    sort: bool = False
    until_us: int | None = None


def simulations_module() -> ModuleType:
    """Import nova_preempt.simulator.simulation: not before it is needed.

    :raises NotInstalled: numpy is not, which is an extra
    """
    try:
        from nova_preempt.simulator import simulation as simulations
    except ImportError as exc:
        msg = f'numpy is needed: pip install nova-preempt[simulator] ({exc})'
        raise NotInstalled(msg) from None
    return simulations


def run(job: Job) -> dict[str, Any]:
    """Return the summary of a run.

    :raises NotInstalled: numpy is not
    :raises TraceError, OSError: of the trace
    """
    simulations = simulations_module()
    simulation = simulations.Simulation(job.setting, job.options, job.seed)
    trace = trace_formats.Trace(job.trace_format, job.paths, job.scale,
                                job.sort)
    try:
        summary: dict[str, Any] = simulation.run(trace, job.until_us)
    except simulations.SimulationError as exc:
        msg = f'{job.paths[0]}: {exc}'
        raise TraceError(msg) from None
    return summary


def in_processes(jobs: Sequence[Job], count: int
                 ) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield runs and their summaries as they are ready.

    A run whose process has died is begun again in another one.

    :param count: of processes
    :raises RunsLost: that has happened too often
    """
    left = dict(enumerate(jobs))
    for _ in range(MOST_TRIES):
        # What a thread of ours holds would be held for ever in a fork of us.
        context = multiprocessing.get_context('forkserver')
        context.set_forkserver_preload(['nova_preempt.simulator.simulation'])
        with concurrent.futures.ProcessPoolExecutor(
                min(count, len(left)), context) as pool:
            futures = {pool.submit(run, job): number
                       for number, job in left.items()}
            try:
                for future in concurrent.futures.as_completed(futures):
                    number = futures[future]
                    try:
                        summary = future.result()
                    except process.BrokenProcessPool:
                        continue
                    del left[number]
                    yield jobs[number], summary
            finally:
                pool.shutdown(cancel_futures=True)
        if not left:
            return
    msg = (f'the processes of {len(left)} runs were killed {MOST_TRIES} times;'
           ' the host may be out of memory: use fewer --jobs')
    raise RunsLost(msg)


def on_dask(jobs: Sequence[Job], address: str
            ) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield runs and their summaries as they are ready, of a Dask cluster.

    What a lost worker ran is run again by another one, and so is what has
    failed with the worker, ``MOST_TRIES`` times in all.

    :param address: of its scheduler
    :raises NotInstalled: distributed is not
    :raises OSError: nobody answers there
    :raises RunsLost: a run has taken down one worker after the other
    """
    try:
        import distributed
    except ImportError as exc:
        msg = ('--dask needs distributed: pip install '
               f'nova-preempt[dask] ({exc})')
        raise NotInstalled(msg) from exc
    with distributed.Client(address) as client:
        # Equal arguments are not run once for all: they are never equal.
        futures = client.map(run, jobs, pure=False)
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            for future in distributed.as_completed(futures):
                try:
                    summary = future.result()
                except distributed.KilledWorker as exc:
                    raise RunsLost(str(exc)) from exc
                yield jobs[numbers[future.key]], summary
        finally:
            client.cancel(futures)


def mean(summaries: Sequence[Any]) -> Any:
    """Return a summary whose figures are the means of those of others.

    What some have not counts as 0 of them.
    """
    if any(isinstance(each, Mapping) for each in summaries):
        found = [each if isinstance(each, Mapping) else {}
                 for each in summaries]
        names = dict.fromkeys(name for each in found for name in each)
        return {name: mean([each.get(name, 0) for each in found])
                for name in names}
    total = functools.reduce(lambda one, other: one + other, summaries)
    value = total / len(summaries)
    return int(value) if value == int(value) else round(value, 6)
