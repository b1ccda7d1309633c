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

"""How fast requests are put in order by PROMETHEE II.

By four priorities of three levels, with and without the time that each has
waited for.

Usage: python bench/promethee.py [--requests 100000]
"""

import argparse
import random
import time

from nova_preempt.core.classes import promethee

PRIORITIES = tuple(map(promethee.Criterion,
                       ('time', 'reputation', 'cores', 'redundancy')))
AGEING = promethee.ageing(PRIORITIES, 3600)


def make(count, chance):
    """Requests, each of which has waited for up to ten days."""
    return [
        promethee.Alternative(f'{chance.getrandbits(128):032x}',
                              chance.randrange(10**15),
                              (*(chance.randint(1, 3) for _ in PRIORITIES),
                               chance.randrange(864_000)))
        for _ in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--requests', type=int, default=100_000)
    args = parser.parse_args()
    requests = make(args.requests, random.Random(1))
    for title, chosen, criteria in (
            ('four priorities',
             [promethee.Alternative(each.uuid, each.submitted_us,
                                    each.values[:-1]) for each in requests],
             PRIORITIES),
            ('and waiting time', requests, (*PRIORITIES, AGEING))):
        took = []
        for _ in range(7):
            begun = time.process_time()
            promethee.ordered(chosen, criteria)
            took.append(time.process_time() - begun)
        print(f'{title}: {len(chosen)} in {1000 * min(took):.0f} ms')


if __name__ == '__main__':
    main()
