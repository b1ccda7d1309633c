# SPDX-License-Identifier: Apache-2.0
"""Measure time and quality of placing many requests together.

Against one by one where the score is best ("greedy") and where room is found
first ("first fit"), in the same run. Hosts are of some sizes and half full on
average, requests of twelve flavors. Times are of the processor, the least of
some repetitions: a machine that does something else does not change them much.
So the solver is not ended by the clock here, unless --limit says so: what it
takes is to be seen. With --load so many requests wait that they ask for that
share of what is free.

Usage: python bench/batch.py [--hosts 5000] [--requests 300] [--load 1.05]
           [--limit 3600] [--repetitions 3]
"""

import argparse
import random
import time

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice

# Milliseconds of the processor that are aimed at: {(mode, requests, hosts)}.
TARGETS = {
    (batch_model.EXACT, 300, 5_000): 500,
    (batch_model.EXACT, 1_000, 5_000): 2_000,
}


def make_hosts(count, chance):
    hosts = []
    for number in range(count):
        cores = chance.choice((8, 16, 32, 48, 64, 96))
        amounts = {'VCPU': cores, 'DISK_GB': 1_000,
                   'MEMORY_MB': cores * chance.choice((2048, 4096, 8192))}
        hosts.append(batch_model.HostState(
            f'h{number:05}',
            {name: int(amount * (1 - chance.random()))
             for name, amount in sorted(amounts.items())},
            amounts, weight=-number))
    return hosts


def make_requests(chance, count=None, cores=None):
    """Return a number of requests, or requests for a number of cores."""
    flavors = []
    for _ in range(12):
        size = 2 ** chance.randrange(4)
        flavors.append({
            'VCPU': size, 'DISK_GB': chance.choice((10, 20, 40, 80)),
            'MEMORY_MB': size * chance.choice((1024, 2048, 4096, 8192))})
    requests, asked = [], 0
    while len(requests) != count:
        flavor = chance.choice(flavors)
        asked += flavor['VCPU']
        if cores is not None and asked > cores:
            break
        requests.append(batch_model.Request(f'r{len(requests):06}',
                                            len(requests), flavor))
    return requests


def run(title, requests, hosts, args, **options):
    options.setdefault('time_limit_s', args.limit)
    options.setdefault('most_at_once',
                       min(batch_model.MOST_AT_ONCE, max(1, len(requests))))
    placer = solver_choice.make(batch_model.Options(**options), time.monotonic)
    took = []
    for _ in range(args.repetitions):
        begun = time.process_time()
        found = placer.place(requests, hosts)
        took.append(1000 * (time.process_time() - begun))
    used = {host for each in found.placed.values() for host in each}
    first = next((number for number, request in enumerate(requests)
                  if request.uuid in found.unplaced), None)
    aim = TARGETS.get((options['mode'], len(requests), len(hosts)))
    print(f'  {title:28} {len(found.placed):6} placed on {len(used):5} hosts'
          f'{min(took):9.0f} ms'
          + (f' (aim {aim})' if aim else '')
          + ('' if first is None else f', the first left out is {first}')
          + f"; {found.parts[0].method if found.parts else 'nothing'}"
          + (', optimal' if all(part.optimal for part in found.parts)
             else ''))


def compare(args):
    chance = random.Random(1)
    hosts = make_hosts(args.hosts, chance)
    if args.load:
        cores = args.load * sum(host.free['VCPU'] for host in hosts)
        requests = make_requests(chance, cores=cores)
    else:
        requests = make_requests(chance, args.requests)
    print(f'{len(requests)} requests on {len(hosts)} hosts')
    run('first fit', requests, hosts, args, mode=batch_model.GREEDY,
        score=batch_model.WEIGHTS)
    for score in (batch_model.DP, batch_model.ML):
        run(f'one by one, {score}', requests, hosts, args,
            mode=batch_model.GREEDY, score=score)
    for score in (batch_model.DP, batch_model.ML):
        run(f'exact, {score}', requests, hosts, args,
            mode=batch_model.EXACT, score=score)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', type=int, default=5_000)
    parser.add_argument('--requests', type=int, default=300)
    parser.add_argument('--load', type=float)
    parser.add_argument('--limit', type=float, default=3600)
    parser.add_argument('--repetitions', type=int, default=3)
    compare(parser.parse_args())


if __name__ == '__main__':
    main()
