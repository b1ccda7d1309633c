# SPDX-License-Identifier: Apache-2.0
"""Measure how many requests per second a simulation decides, on one core.

A synthetic load comes to a cloud as large as Google's was in 2011, at the
rate that it had there.

Usage: python bench/simulator.py [--hosts 12500] [--hours 24] [--profile]
"""

import argparse
import cProfile
import pstats
import resource
import time

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import Inventory
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import generator

#: Of a host, on which López García's servers fit.
HOST = {'VCPU': Inventory(8), 'MEMORY_MB': Inventory(16000),
        'DISK_GB': Inventory(160)}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--hosts', type=int, default=12500)
    parser.add_argument('--hours', type=float, default=24.0)
    parser.add_argument('--load', type=float, default=1.0,
                        help='requested capacity as a share of the capacity')
    parser.add_argument('--preemptible', type=float, default=0.3,
                        help='share of preemptible servers')
    parser.add_argument('--cost', default='partial_hour')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--profile', action='store_true')
    args = parser.parse_args()
    setup = simulation_settings.CloudSetting(
        (simulation_settings.HostKind('host', args.hosts, HOST),))
    simulation = run.Simulation(
        setup, simulation_settings.Options(preemption_policy.Policy(
            eligibility.Rules(), ('delete',), getattr(costs, args.cost),
            notice=NoticeRule(30))), args.seed)
    load = make_load(args)
    profile = cProfile.Profile(time.process_time)
    start = time.process_time()
    if args.profile:
        profile.enable()
    summary = simulation.run(generator.generate(load, args.seed))
    profile.disable()
    took_s = time.process_time() - start
    asked = sum(each['asked'] for each in summary['classes'].values())
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f'{asked} requests on {args.hosts} hosts in {took_s:.1f} s of '
          f'processor time: {asked / took_s:.0f} a second; '
          f'{memory_mib:.0f} MiB')
    print(summary)
    if args.profile:
        pstats.Stats(profile).sort_stats('tottime').print_stats(35)


def make_load(args):
    """Return a load of this share of the hosts at Google's rate."""
    mean_vcpus = (4 * 1 + 2 * 2 + 1 * 4) / 7
    vcpus = HOST['VCPU'].total * args.hosts * args.load
    per_hour = generator.GOOGLE_PER_HOUR * args.hosts / 12500
    mean_s = vcpus / mean_vcpus * 3600 / per_hour
    return generator.Load(args.hours, per_hour, parts=(
        generator.LoadPart('normal', 1 - args.preemptible, mean_s=mean_s,
                           sigma=1.0),
        generator.LoadPart('preemptible', args.preemptible, mean_s=mean_s,
                           sigma=1.0)))


if __name__ == '__main__':
    main()
