# SPDX-License-Identifier: Apache-2.0
"""Place the jobs that the authors of ECSched have published, as they did.

Jobs come over time to thirty machines, ten each of 25, 50 and 100 slots of two
resources. In each step of time up to a hundred of those that wait are placed
together in five rounds, or, as the schedulers of containers that they compare
with, up to fifty one by one. Printed is how long jobs take on average, from
their submission to their end.

The file is "Input" of the authors' repository (github.com/huyang1022/ECSched):
a line for each job, with its number, when it is submitted, how long it runs,
and how many slots it takes of either resource. It is not ours to pass on.

Usage: python bench/ecsched.py FILE
"""

import dataclasses
import sys

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from nova_preempt.simulator.papers import ecsched_flow

MACHINES = {f'm{number:02}': slots for number, slots in enumerate(
    10 * [25] + 10 * [50] + 10 * [100])}


@dataclasses.dataclass(frozen=True)
class Job:
    number: int
    submitted_at: int
    length: int
    first: int
    second: int

    @property
    def amounts(self):
        return {'CUSTOM_FIRST': self.first, 'CUSTOM_SECOND': self.second}


def read(path):
    with open(path, encoding='ascii') as file:
        return [Job(*map(int, line.split())) for line in file
                if line.strip()]


def run(jobs, most, placer):
    """Return the mean time of jobs.

    :param most: limit of the jobs placed in a step of time
    """
    free = {name: {'CUSTOM_FIRST': slots, 'CUSTOM_SECOND': slots}
            for name, slots in MACHINES.items()}
    ahead = sorted(jobs, key=lambda job: (job.submitted_at, job.number))
    waiting, running, took, now = [], [], [], 0
    while ahead or waiting:
        for end, name, job in [each for each in running if each[0] <= now]:
            running.remove((end, name, job))
            change(free[name], job, 1)
        while ahead and ahead[0].submitted_at <= now:
            waiting.append(ahead.pop(0))
        for name, job in place(placer, waiting[:most], free):
            waiting.remove(job)
            change(free[name], job, -1)
            running.append((now + job.length, name, job))
            took.append(now + job.length - job.submitted_at)
        now += 1
    return sum(took) / len(took)


def place(placer, jobs, free):
    """Return [(machine, job)] of the jobs that start now."""
    if not jobs:
        return []
    found = placer.place(
        [batch_model.Request(f'{job.number:09}', order, job.amounts)
         for order, job in enumerate(jobs)],
        [batch_model.HostState(name, amounts, dict.fromkeys(amounts, slots))
         for (name, amounts), slots in zip(
             free.items(), MACHINES.values(), strict=True)])
    return [(name, job) for job in jobs
            for name in found.placed.get(f'{job.number:09}', ())]


def one_by_one(score):
    return solver_choice.make(batch_model.Options(mode=batch_model.GREEDY,
                                                  score=score))


def change(amounts, job, sign):
    for name, amount in job.amounts.items():
        amounts[name] += sign * amount


def main():
    jobs = read(sys.argv[1])
    print(f'{len(jobs)} jobs')
    for title, most, make in (
            ('together, 5 rounds of 100', 100, ecsched_flow.placer),
            ('one by one, 50 in a step', 50, one_by_one)):
        for score in (batch_model.DP, batch_model.ML):
            mean = run(jobs, most, make(score))
            print(f'  {title:26} {score}: {mean:8.3f}')


if __name__ == '__main__':
    main()
