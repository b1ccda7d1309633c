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
"""Victims for those that a batch has left out."""

import itertools
import random
import unittest

from nova_preempt.core import capacity
from nova_preempt.core import model as core_model
from nova_preempt.core import victims
from nova_preempt.core.batch import model
from nova_preempt.core.batch import preempting
from tests.unit.core.batch import base


def host(name, total, *servers):
    """Servers: (uuid, VCPU, cost), all of them preemptible."""
    provider = core_model.Provider(
        name, 1, {'VCPU': core_model.Inventory(total)},
        {uuid: {'VCPU': amount} for uuid, amount, _cost in servers})
    return core_model.Host(name, (provider,), tuple(
        core_model.Candidate(uuid, {(name, 'VCPU'): amount}, cost)
        for uuid, amount, cost in servers))


def place(requests, hosts, outranks=lambda request, candidate: True):
    """Both steps; {uuid: (host, uuids of victims)}."""
    found = base.place(requests, [model.HostState.of(each) for each in hosts])
    taken = {}
    for (name, item), amount in base.used(requests, found).items():
        taken.setdefault(name, {})[item] = amount
    late = [each for each in requests if each.uuid in found.unplaced]
    more, refused = preempting.preempt(
        late, hosts, taken, outranks,
        lambda request, host: request.hosts is None
        or host.name in request.hosts)
    return {
        **{uuid: (name, []) for uuid, name in base.where(found).items()},
        **{each.uuid: (each.host, [victim.uuid
                                   for victim in each.victims.victims])
           for each in more}}, refused


def joint(requests, hosts):
    """The best of all: who is placed, in order, and what that costs."""
    known = {}

    def cost(at, load):
        key = at.name, load
        if key not in known:
            lack = capacity.missing(
                core_model.Request.of({'VCPU': load}), at)
            found = None if isinstance(lack, core_model.Refusal) else (
                victims.cheapest_victims(at.candidates, lack))
            known[key] = None if found is None else found.cost
        return known[key]

    best = None
    sizes = [each.server.groups[0].resources['VCPU'] for each in requests]
    for chosen in itertools.product([None, *hosts], repeat=len(requests)):
        costs = [cost(at, sum(size for size, other in zip(
                     sizes, chosen, strict=True) if other is at))
                 for at in hosts if at in chosen]
        if None in costs:
            continue
        key = tuple(at is not None for at in chosen), -sum(costs)
        best = max(best or key, key)
    return best


class TestPreempt(unittest.TestCase):

    def test_what_is_free_comes_first(self):
        found, refused = place(
            [base.request(0, 2), base.request(1, 2)],
            [host('a', 4, ('s', 2, 5), ('t', 2, 3)), host('b', 2)])
        self.assertEqual({'r0': ('b', []), 'r1': ('a', ['t'])}, found)
        self.assertEqual({}, refused)

    def test_victims_end_once(self):
        found, refused = place(
            [base.request(0, 2), base.request(1, 2), base.request(2, 2)],
            [host('a', 4, ('s', 4, 1))])
        self.assertEqual({'r0': ('a', ['s']), 'r1': ('a', [])}, found)
        self.assertEqual({'r2': 'no_room'}, {
            uuid: reason.code for uuid, reason in refused.items()})

    def test_whom_it_outranks(self):
        found, _refused = place(
            [base.request(0, 2)], [host('a', 2, ('s', 2, 1)),
                                   host('b', 2, ('t', 2, 9))],
            lambda request, candidate: candidate.uuid == 't')
        self.assertEqual({'r0': ('b', ['t'])}, found)

    def test_whom_no_victims_are_looked_for(self):
        requests = [base.request(0, 1, count=2, least=2),
                    base.request(1, 1, together=('g',)),
                    base.request(2, 1, apart=['g'])]
        found, refused = place(requests, [host('a', 2, ('s', 2, 1))])
        self.assertEqual({}, found)
        self.assertEqual({'r0', 'r1', 'r2'}, set(refused))

    def test_what_two_steps_lose(self):
        """The small one gets what is free, where the large is cheapest."""
        requests = [base.request(0, 1), base.request(1, 2)]
        hosts = [host('a', 2, ('s', 1, 1)), host('b', 2, ('t', 2, 10)),
                 host('c', 1, ('u', 1, 1))]
        found, _refused = place(requests, hosts)
        self.assertEqual({'r0': ('a', []), 'r1': ('b', ['t'])}, found)
        self.assertEqual(((True, True), -2), joint(requests, hosts))

    def test_never_better_than_both_at_once(self):
        chance = random.Random(1)
        for _ in range(25):
            serial = itertools.count()
            hosts = [host(name, 4, *(
                (f's{next(serial)}', chance.randint(1, 2),
                 chance.randint(1, 9)) for _ in range(chance.randint(0, 2))))
                for name in 'ab']
            requests = [base.request(number, chance.randint(1, 3))
                        for number in range(3)]
            found, _refused = place(requests, hosts)
            costs = {each.uuid: each.cost
                     for at in hosts for each in at.candidates}
            ours = (tuple(each.uuid in found for each in requests),
                    -sum(costs[uuid] for _host, gone in found.values()
                         for uuid in gone))
            self.assertLessEqual(ours, joint(requests, hosts))
