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
"""The cases of the paper, made exact."""

import unittest

from nova_preempt.core.batch import model
from tests.unit.core.batch import base

DEMANDS = ((10, 10), (20, 10), (50, 60))
FREE = ((25, 25), (50, 50), (100, 100))


def containers(**more):
    return [base.request(number, *demand, **more)
            for number, demand in enumerate(DEMANDS)]


def machines(free=FREE):
    return [base.host(f'm{number}', *amounts)
            for number, amounts in enumerate(free)]


class TestPaper(unittest.TestCase):

    def place(self, requests, hosts, **options):
        """In one round, by each of the solvers."""
        found = [base.place(requests, hosts, mode=model.ECSCHED, rounds=1,
                            solver=solver, **options)
                 for solver in (model.CLASSES, model.ASSIGNMENT,
                                model.ORTOOLS)]
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        return found[0]

    def test_001_a(self):
        """Dot product."""
        found = self.place(containers(), machines())
        self.assertEqual({'r0': 'm0', 'r1': 'm1', 'r2': 'm2'},
                         base.where(found))
        self.assertEqual(1_300_000, found.score)

    def test_001_a_one_by_one(self):
        """The first takes the place that the last would have needed."""
        # One on a machine, as in the paper's network.
        found = base.place(containers(apart=['all']), machines(),
                           mode=model.GREEDY)
        self.assertEqual({'r0': 'm2', 'r1': 'm1'}, base.where(found))
        self.assertEqual(350_000, found.score)
        self.assertEqual({'r2': 'taken'}, base.codes(found))

    def test_001_b(self):
        """Most loaded."""
        found = self.place(containers(), machines(), score=model.ML)
        self.assertEqual({'r0': 'm1', 'r1': 'm0', 'r2': 'm2'},
                         base.where(found))
        self.assertEqual(2_700_000, found.score)

    def test_001_c(self):
        """Whether it costs something to leave a container out."""
        requests = [base.request(0, 50, 50),
                    base.request(1, 5, 5, hosts=['m0'])]
        hosts = machines(((100, 100), (50, 50)))
        found = self.place(requests, hosts, unscheduled_free=True)
        self.assertEqual(({'r0': 'm0'}, 1_000_000),
                         (base.where(found), found.score))
        found = self.place(requests, hosts)
        self.assertEqual(({'r0': 'm1', 'r1': 'm0'}, 600_000),
                         (base.where(found), found.score))

    def test_001_d(self):
        """Capacities are shares of the largest machine's."""
        hosts = [base.host('medium', 1, 3), base.host('large', 2, 6),
                 base.host('xlarge', 4, 12)]
        for number, share in enumerate((0.25, 0.5, 1)):
            # What asks for all of the largest, times a share in each class.
            found = self.place(
                [base.request(0, 1, 3, hosts=[hosts[number].name])], hosts)
            self.assertEqual(round(2 * 0.25 * share * 10**6), found.score)

    def test_001_f(self):
        """Those that have to be together are on one machine."""
        requests = [base.request(number, 40, together=('g',))
                    for number in (0, 1)]
        for mode in model.MODES:
            found = base.place(
                requests, [base.host('a', 50), base.host('b', 90)], mode=mode)
            self.assertEqual({'r0': 'b', 'r1': 'b'}, base.where(found))
            found = base.place(
                requests, [base.host('a', 50), base.host('b', 70)], mode=mode)
            self.assertEqual({'r0': 'no_room', 'r1': 'no_room'},
                             base.codes(found))
            self.assertIn('VCPU: 80 asked for, 70 free',
                          found.unplaced['r0'].text)
