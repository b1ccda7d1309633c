# SPDX-License-Identifier: Apache-2.0
"""Compare policies of preemption on public traces, in the simulator.

First fit without preemption, aardvark's kill and retry, Watcher's spec,
Blazar's preemptible servers and nova-preempt serve the same requests on the
same cloud (duel_policies.py has the rules and their sources, duel_traces.py
the traces and where they are published). Printed are, for each trace and
policy, the normal requests that were refused and those that had to wait, the
median of their waits, the victims and the vCPU-hours that victims had run for
each normal request that was served, and the decisions a second of processor
time.

Usage: python bench/duel.py [--data FOLDER] [--traces azure,alibaba,nasa]
       [--grid]
"""

import argparse
import collections
import dataclasses
import math
import statistics
import sys

import duel_policies
import duel_score
import duel_traces

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.simulator import simulation_settings

_AARDVARK = duel_policies.Aardvark
_WATCHER = duel_policies.Watcher
_BLAZAR = duel_policies.Blazar
_OURS = duel_policies.Contest

#: {name: (class, its settings, cost of a victim)}, each in its best settings.
POLICIES = {
    'first fit': (duel_policies.FirstFit, {}, costs.partial_hour),
    'aardvark, chance': (_AARDVARK, {'strategy': 'chance',
                                     'max_attempts': 20}, costs.count),
    'aardvark, strict': (_AARDVARK, {'strategy': 'strict'}, costs.count),
    'Watcher': (_WATCHER, {'free_percentage': 0, 'min_age_s': 0,
                           'on_request': True}, costs.count),
    'Blazar': (_BLAZAR, {}, costs.count),
    'nova-preempt': (_OURS, {}, costs.partial_hour),
    'same, youngest_first': (_OURS, {}, costs.youngest_first),
}

#: {name of a policy: the settings that --grid compares}
GRID = {
    'aardvark, chance': [
        {'strategy': 'chance', 'max_attempts': attempts,
         'watermark': watermark}
        for attempts in (5, 20) for watermark in (None, 95)],
    'aardvark, strict': [
        {'strategy': 'strict', 'first': first, 'watermark': watermark}
        for first in ('MEMORY_MB', 'VCPU') for watermark in (None, 95)],
    'Watcher': [
        {'free_percentage': percentage, 'interval_s': interval_s,
         'min_age_s': age_s, 'on_request': on_request}
        for percentage, interval_s, on_request in (
            (5, 60, False), (10, 60, False), (20, 60, False),
            (10, 300, False), (0, 60, True), (5, 60, True), (10, 60, True))
        for age_s in (0, 3600)],
    'Blazar': [{'randomize_host_selection': randomize}
               for randomize in (False, True)],
}


@dataclasses.dataclass(frozen=True)
class Ring:
    """A trace with the cloud that serves it.

    :param omitted: how many requests fit no host, and are left out
    """

    boots: list
    setting: simulation_settings.CloudSetting
    omitted: int

    @classmethod
    def of(cls, recipe, folder, seed, room=1.0):
        """Read a trace, and build the cloud for it.

        :param room: the capacity, as a share of the vCPUs that the normal
            requests need for 95 % of the time
        """
        boots, omitted = recipe.boots(folder, seed)
        vcpus = room * duel_traces.quantile_vcpus(boots)
        count = max(1, math.ceil(vcpus / recipe.host['VCPU']))
        return cls(boots, simulation_settings.CloudSetting((
            simulation_settings.HostKind('host', count,
                                         recipe.inventories()),)), omitted)

    def run(self, policy, settings, cost, notice_s, seed):
        """Return the duel_score.Score of a policy on this trace."""
        score = duel_score.Score(notice_s, {
            each.id: each.resources.get('VCPU', 0) for each in self.boots})
        options = simulation_settings.Options(
            preemption_policy.Policy(
                eligibility.Rules(), ('delete',), cost,
                notice=NoticeRule(notice_s)),
            enabled=not issubclass(policy, (duel_policies.Rival,
                                            duel_policies.FirstFit)))
        policy(self.setting, options, seed, score, **settings).run(self.boots)
        return score


def row(name, scores):
    """Return the figures of a policy as a line of the table.

    :param scores: one of each seed
    """
    refused = [score.counts['refused', duel_traces.NORMAL] for score in scores]
    served = max(1, sum(len(score.delays_us) for score in scores))
    delayed = [delay for score in scores for delay in score.delayed_us]
    counts = sum((score.counts for score in scores), collections.Counter())
    lost_vcpu_h = sum(score.lost_vcpu_s for score in scores) / 3600
    choice_s = sum(score.choice_s for score in scores)
    return (f'{name:<22}{statistics.mean(refused):>7.0f} '
            f'{f"({min(refused)}-{max(refused)})":<13}'
            f'{len(delayed) / len(scores):>7.0f}'
            f'{statistics.median(delayed or [0]) / SECOND:>9.1f}'
            f'{counts["victims"] / served:>9.3f}{lost_vcpu_h / served:>9.3f}'
            f'{counts["decisions"] / max(1e-9, choice_s):>9.0f}')


HEAD = (f'{"":<22}{"refused (range)":<21}{"delayed":>7}{"median s":>9}'
        f'{"victims":>9}{"vCPU-h":>9}{"dec./s":>9}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--data', metavar='FOLDER',
                        help='folder of the files of the traces; without it '
                             'the load is generated')
    parser.add_argument('--traces', metavar='NAME,...',
                        help='traces to run (azure,alibaba,nasa)')
    parser.add_argument('--grid', action='store_true',
                        help='run each rival with a grid of settings')
    parser.add_argument('--room', type=float, default=1.0,
                        help='capacity of the cloud, as a share of the vCPUs '
                             'that normal requests need 95 %% of the time (1)')
    parser.add_argument('--notice', type=int, default=0, metavar='S',
                        help='notice that every victim of every policy gets '
                             '(0)')
    parser.add_argument('--seeds', type=int, default=5, metavar='N',
                        help='number of runs, with the seeds 1 to N (5)')
    args = parser.parse_args()
    names = args.traces or ('azure,alibaba,nasa' if args.data else 'generated')
    for name in names.split(','):
        duel(name, args)


def duel(name, args):
    """Run all policies on one trace, and print the table."""
    recipe = duel_traces.TRACES[name]
    rings = {seed: Ring.of(recipe, args.data, seed, args.room)
             for seed in range(1, args.seeds + 1)}
    ring = rings[1]
    kind, = ring.setting.hosts
    spots = sum(each.class_name == duel_traces.PREEMPTIBLE
                for each in ring.boots)
    print(f'{name}: {len(ring.boots) - spots} normal and {spots} preemptible '
          f'requests in {ring.boots[-1].at_us / SECOND / 3600:.0f} h '
          f'({recipe.rule})\n{kind.count} hosts of {recipe.host}; '
          f'{ring.omitted} requests fit no host and are omitted\n{HEAD}')
    for title, policy, settings, cost in runs(args.grid):
        print(row(title, [
            ring.run(policy, settings, cost, args.notice, seed)
            for seed, ring in rings.items()]), flush=True)
    print()


def runs(is_grid):
    """Yield (title, class, settings, cost) of what is run."""
    for name, (policy, settings, cost) in POLICIES.items():
        if not is_grid:
            yield name, policy, settings, cost
        for each in GRID.get(name, ()) if is_grid else ():
            text = ', '.join(f'{key}={value}' for key, value in each.items())
            yield f'{name} {text}\n{"":<22}', policy, each, cost


if __name__ == '__main__':
    sys.exit(main())
