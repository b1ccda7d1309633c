# SPDX-License-Identifier: Apache-2.0
"""Measure how long each order takes to sort waiting requests.

    python bench/orders.py [--requests 100000] [--order NAME]

Prints the least of seven times of the processor. What is read from the
database before is not measured. README.rst says more.
"""

import argparse
import datetime
import fractions
import random
import time

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dominant_fair_share
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_order
from nova_preempt.core.classes import promethee

NOW = datetime.datetime.fromisoformat('2026-01-01T12:00:00')
CLASSES = availability_margin.QosClasses(*(
    availability_margin.QosClass(name, number, fractions.Fraction(share),
                                 availability_margin.PASS_PERIOD_S,
                                 least_run_s=availability_margin.LEAST_RUN_S)
    for number, (name, share) in enumerate(
        (('gold', '1'), ('silver', '0.9'), ('bronze', '0.5')), start=1)))
PRIORITIES = tuple(map(promethee.Criterion,
                       ('time', 'reputation', 'cores', 'redundancy')))
AGEING = promethee.ageing(PRIORITIES, 3600)
# No two of these have a factor in common, as in a cloud that has grown.
TOTAL = {'VCPU': 63871, 'MEMORY_MB': 262143977, 'DISK_GB': 4000017}


def make_requests(count, chance):
    """Requests of 100 projects for ten flavors."""
    flavors = [
        (backlog_model.Alternative(f'{vcpus}-{factor}', f'{vcpus}-{factor}', {
            'VCPU': vcpus, 'MEMORY_MB': factor * 1024 * vcpus,
            'DISK_GB': 20}),)
        for vcpus in (1, 2, 4, 8, 16) for factor in (1, 4)]
    return [
        backlog_model.Request(
            f'{number:036}', f'p{chance.randrange(100)}', 'u', 't', {}, '2.90',
            1, 1, chance.choice(flavors),
            NOW - datetime.timedelta(seconds=count - number), NOW)
        for number in range(count)]


def fifo(count, chance):
    requests = make_requests(count, chance)
    return lambda: queue_order.FIFO().rank(requests, NOW,
                                           queue_order.ProjectUsage({}, TOTAL))


def fair(count, chance):
    requests = make_requests(count, chance)
    shares = queue_order.ProjectUsage({f'p{number}': {'VCPU': number}
                                       for number in range(100)}, TOTAL)
    return lambda: dominant_fair_share.DominantFairShare().rank(requests, NOW,
                                                                shares)


def qos(count, chance):
    """Half of them have run before, within the last ten days."""
    waiting = []
    for _ in range(count):
        total_us = chance.randrange(864 * 10**9)
        running_us = chance.choice((0, chance.randrange(total_us + 1)))
        waiting.append(class_order.WaitingRequest(
            f'{chance.getrandbits(128):032x}', chance.randrange(len(CLASSES)),
            running_us, total_us, 60 * 10**6, chance.randrange(10**15)))
    return lambda: class_order.ordered(CLASSES, waiting)


def priorities(count, chance, criteria=(*PRIORITIES, AGEING)):
    """They have waited for up to ten days."""
    found = [
        promethee.Alternative(
            f'{chance.getrandbits(128):032x}', chance.randrange(10**15),
            (*(chance.randint(1, 3) for _ in PRIORITIES),
             chance.randrange(864_000))[:len(criteria)])
        for _ in range(count)]
    return lambda: promethee.ordered(found, criteria)


ORDERS = {
    'fifo': fifo,
    'fair_share': fair,
    'promethee': priorities,
    'promethee, no ageing': lambda count, chance: priorities(
        count, chance, PRIORITIES),
    'qos': qos,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--requests', type=int, default=100_000)
    parser.add_argument('--order', choices=ORDERS)
    args = parser.parse_args()
    for name in [args.order] if args.order else ORDERS:
        put_in_order = ORDERS[name](args.requests, random.Random(1))
        took = []
        for _ in range(7):
            begun = time.process_time()
            put_in_order()
            took.append(time.process_time() - begun)
        print(f'{name}: {args.requests} in {1000 * min(took):.0f} ms')


if __name__ == '__main__':
    main()
