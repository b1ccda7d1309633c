# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
import unittest

from nova_preempt.core.energy import candidates
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import healing
from nova_preempt.core.reservation import model


class TestDownSince(unittest.TestCase):

    def test_the_clock_begins_anew_when_it_lets_go(self) -> None:
        since = healing.down_since({}, ['a'], 100, braked=False)
        since = healing.down_since(since, ['a', 'b'], 110, braked=False)
        self.assertEqual({'a': 100, 'b': 110}, since)
        since = healing.down_since(since, ['a', 'b'], 120, braked=True)
        since = healing.down_since(since, ['b'], 130, braked=False)
        self.assertEqual({'b': 120}, since)


class TestReturns(unittest.TestCase):

    def check(self, quantity, held, former, *expected) -> None:
        self.assertEqual(
            tuple(healing.Return(*item) for item in expected),
            healing.returns(quantity, held, former))

    def test_only_where_its_servers_are(self) -> None:
        self.check(2, {'a': 1}, {'b': 0})

    def test_where_one_is_missing(self) -> None:
        self.check(2, {'a': 0}, {'b': 1}, ('b',))

    def test_in_place_of_one_that_is_not_used(self) -> None:
        self.check(2, {'a': 1, 'b': 0}, {'c': 2}, ('c', 'b'))

    def test_on_top_where_all_are_used(self) -> None:
        self.check(1, {'a': 1}, {'b': 1}, ('b', None))

    def test_those_with_most_servers_first(self) -> None:
        self.check(3, {'a': 0, 'b': 0}, {'c': 1, 'd': 3, 'e': 1},
                   ('d',), ('c', 'a'), ('e', 'b'))


UP = healing.Health(usable=True, enabled=True)
OFF = healing.Health(usable=False, enabled=True)
DISABLED = healing.Health(usable=False, enabled=False)
DARK = healing.Health(usable=False, enabled=True, dark=True)


class TestDown(unittest.TestCase):

    def find(self, held, partial=False, **hosts):
        found = healing.find_down(held, hosts, partial=partial)
        return ''.join(sorted(found.held)), found.number, found.of

    def test_who_is_down(self) -> None:
        self.assertEqual(('b', 2, 4), self.find(
            'ab', a=UP, b=OFF, c=UP, d=OFF))

    def test_what_an_operator_has_disabled_counts_where_it_is_held(
            self) -> None:
        self.assertEqual(('b', 1, 2), self.find(
            'ab', a=UP, b=DISABLED, c=DISABLED))

    def test_who_is_gone_is_down(self) -> None:
        self.assertEqual(('x', 1, 2), self.find('ax', a=UP))

    def test_not_what_cannot_be_seen(self) -> None:
        self.assertEqual(('', 0, 1), self.find('ax', a=UP, partial=True))
        self.assertEqual(('', 0, 2), self.find('ab', a=UP, b=DARK,
                                               partial=True))

    def test_after_its_time_to_come_back(self) -> None:
        for since_s, braked, expected in (
                (None, False, False), (41, False, False), (40, False, True),
                (0, True, False)):
            self.assertIs(expected, healing.is_given_up(
                since_s, 100, 60, braked=braked))


def reservation(*hosts, quantity=2, **values):
    start_at, end_at = model.from_s(1000), model.from_s(2000)
    return model.Reservation(**{
        'uuid': 'r1', 'project_id': 'p', 'quantity': quantity,
        'duration_s': 1000, 'window_start': start_at, 'end_action': 'delete',
        'before_end_s': 0, 'start_at': start_at, 'end_at': end_at,
        'hosts': tuple(model.Assignment(name, start_at, end_at, status)
                       for name, status in hosts), **values})


PLACE = healing.Place(1000, 2000)


def spare(name, busy=(), **values):
    return healing.Spare(calendar.ReservableHost(name, busy), **values)


class TestSubstitutes(unittest.TestCase):

    def find(self, spares, place=PLACE,
             ranking=calendar.name, vacant='abcdef'):
        return ''.join(healing.substitutes(place, spares, ranking,
                                           vacant.__contains__))

    def test_place(self) -> None:
        held = ('a', model.READY), ('b', model.LOST)
        for now_s, lead_s, since_s, soon in (
                (0, 900, 1000, False), (100, 900, 1000, True),
                (1500, 0, 1500, True)):
            self.assertEqual(
                healing.Place(since_s, 2000, soon, {'a', 'z'}, {'b'}),
                healing.make_place(reservation(*held), now_s, lead_s, 'z'))

    def test_as_the_ranking_says(self) -> None:
        spares = [
            healing.Spare(calendar.ReservableHost(name, (), watts))
            for name, watts in (('a', None), ('b', 1.0), ('c', 2.0))]
        self.assertEqual('abc', self.find(spares))
        self.assertEqual('cba', self.find(spares, ranking=calendar.energy))

    def test_who_may_not(self) -> None:
        self.assertEqual('f', self.find(
            [spare('a', reservable=False), spare('b', usable=False),
             spare('c', matches=False), spare('d'),
             spare('e', busy=((1999, 3000),)), spare('f')],
            healing.Place(1000, 2000, not_these='d')))

    def test_who_is_not_on(self) -> None:
        off, late = candidates.Off(), candidates.Off('power is paused')
        spares = [spare('a', off=late), spare('b', off=off), spare('c'),
                  spare('d', servers=1)]
        self.assertEqual('cbd', self.find(
            spares, healing.Place(1000, 2000, soon=True)))
        self.assertEqual('abcd', self.find(spares))

    def test_what_was_lost_comes_last(self) -> None:
        self.assertEqual('bca', self.find(
            [spare('a'), spare('b'), spare('c')],
            healing.Place(1000, 2000, lost='a')))

    def test_where_it_is_soon(self) -> None:
        spares = [spare('a', servers=2), spare('b', servers=1), spare('c')]
        self.assertEqual('ba', self.find(
            spares, healing.Place(1000, 2000, soon=True), vacant='ab'))
        self.assertEqual('abc', self.find(spares, vacant=''))


class TestStanding(unittest.TestCase):

    def standing(self, *args, **values):
        return tuple(healing.standing(reservation(
            ('a', model.READY), ('b', model.LOST), **values),
            *args).values())

    def test_degraded(self) -> None:
        said = '1 of 2 hosts are missing'
        self.assertEqual(
            (model.DEGRADED, f'{said}: b is down', said),
            self.standing('b is down', None, status=model.ACTIVE))
        self.assertEqual(
            (model.DEGRADED, said, f'{said}: a host is down'),
            self.standing('', 'a host is down'))

    def test_whole_again(self) -> None:
        for ready_at, status in ((None, model.PENDING),
                                 (model.from_s(1000), model.ACTIVE)):
            self.assertEqual((status, '', ''), self.standing(
                'x', 'y', quantity=1, status=model.DEGRADED, reason='z',
                ready_at=ready_at))

    def test_as_it_was(self) -> None:
        self.assertEqual((model.ACTIVE, 'z', 'w'), self.standing(
            'x', 'y', quantity=1, status=model.ACTIVE, reason='z',
            public_reason='w'))
