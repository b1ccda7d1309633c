# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Measure how long it takes to put requests of classes in order.

Usage: python bench/class_order.py [--requests 100000]
"""

import argparse
import fractions
import random
import time

from nova_preempt.core.classes import margin
from nova_preempt.core.classes import order

CLASSES = margin.Classes(*(
    margin.for_servers(name, number, fractions.Fraction(share))
    for number, (name, share) in enumerate(
        (('gold', '1'), ('silver', '0.9'), ('bronze', '0.5')), start=1)))


def make(count, chance):
    """Requests, half of which have run before, within the last ten days."""
    found = []
    for _ in range(count):
        total_us = chance.randrange(864 * 10**9)
        running_us = chance.choice((0, chance.randrange(total_us + 1)))
        found.append(order.Claim(
            f'{chance.getrandbits(128):032x}', chance.randrange(len(CLASSES)),
            running_us, total_us, 60 * 10**6, chance.randrange(10**15)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--requests', type=int, default=100_000)
    args = parser.parse_args()
    claims = make(args.requests, random.Random(1))
    took = []
    for _ in range(7):
        begun = time.process_time()
        order.ordered(CLASSES, claims)
        took.append(time.process_time() - begun)
    print(f'{len(claims)} in {1000 * min(took):.0f} ms')


if __name__ == '__main__':
    main()
