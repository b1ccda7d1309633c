# SPDX-License-Identifier: Apache-2.0
"""Each invariant finds its own violation and no other."""

import dataclasses
import unittest

from nova_preempt.core import invariant_snapshot
from nova_preempt.core import invariants

S = invariant_snapshot
NORMAL = S.Server('normal', host='h1', guest_on='h1', uses={'VCPU': 2})
SPOT = S.Server('spot', host='h2', guest_on='h2', uses={'VCPU': 2},
                is_preemptible=True)
VICTIM = S.Victim('spot', 'pending')
CLAIMED = S.Decision('d1', 'claimed', 'h2', 'new', stand_ins=('stand-in',),
                     victims=(VICTIM,))
ACT = S.EndingCall('spot', 'force_delete', 100_000_000, CLAIMED)
GOOD = S.Snapshot(
    servers={'normal': NORMAL, 'spot': SPOT},
    hosts=(S.Host('h1', {'VCPU': 4}, {'normal': {'VCPU': 2}}),
           S.Host('h2', {'VCPU': 4}, {'spot': {'VCPU': 2}})))


def servers(**changes):
    """The snapshot with changed servers, by uuid."""
    return dataclasses.replace(GOOD, servers={**GOOD.servers, **changes})


def host(name, allocations, **changes):
    """The snapshot with other allocations on a host."""
    return dataclasses.replace(GOOD, hosts=tuple(
        dataclasses.replace(each, allocations=allocations, **changes)
        if each.name == name else each for each in GOOD.hosts))


def decisions(*found):
    return dataclasses.replace(GOOD, decisions=found)


def act(**changes):
    return dataclasses.replace(
        GOOD, decisions=(CLAIMED,), acts=(dataclasses.replace(
            ACT, **changes),))


def closed(how, **changes):
    """A decision that is over, with its victim so."""
    return dataclasses.replace(
        CLAIMED, status=how, stand_ins=(), victims=(
            dataclasses.replace(VICTIM, **changes),))


def changed(server, **changes):
    return dataclasses.replace(server, **changes)


#: {name of an invariant: a snapshot that breaks it, alone}
BROKEN = {
    'allocations_fit': host('h1', {'normal': {'VCPU': 5}}),
    'guests_keep_their_space': dataclasses.replace(
        host('h2', {'spot': {'VCPU': 2}, 'normal': {'VCPU': 2}}),
        servers={'normal': changed(NORMAL, host='h2', guest_on=''),
                 'spot': changed(SPOT, uses={'VCPU': 3})}),
    'stand_ins_are_open': dataclasses.replace(
        host('h2', {'spot': {'VCPU': 2}, 'stand-in': {'VCPU': 1}}),
        decisions=(dataclasses.replace(CLAIMED, status='rolled_back',
                                       victims=()),)),
    'guests_are_allocated': host('h1', {}),
    'consumers_exist': host('h1', {'normal': {'VCPU': 2},
                                   'nobody': {'VCPU': 1}}),
    'refused_hold_nothing': servers(normal=changed(NORMAL, refused=True)),
    'nothing_is_left_open': decisions(CLAIMED),
    'acts_have_a_decision': act(decision=None),
    'owners_act': act(is_by_owner=False),
    'victims_are_on_the_host': act(is_away=True),
    'migrations_are_awaited': act(is_moving=True),
    'only_preemptible_end': act(is_preemptible=False),
    'notices_are_kept': act(notice_s=10, deadline_us=105_000_000),
    'space_is_held_first': act(is_space_held=False),
    'ends_are_needed': act(is_wanted=False),
    'locks_are_kept': act(locked_by='admin'),
    'minimum_runtimes_are_kept': act(promised_until_us=110_000_000),
    'pauses_are_kept': act(is_paused=True),
    'victims_end_once': decisions(
        CLAIMED, dataclasses.replace(CLAIMED, uuid='d2', server='other')),
    'one_decision_a_server': decisions(
        CLAIMED, dataclasses.replace(CLAIMED, uuid='d2', victims=())),
    'done_is_done': decisions(closed('done')),
    'victims_are_as_recorded': decisions(closed('done', status='gone')),
    'notices_are_withdrawn': servers(spot=changed(SPOT, notice='d1')),
    'our_locks_are_removed': servers(
        spot=changed(SPOT, is_locked_by_us=True)),
    'kept_run_again': dataclasses.replace(
        servers(spot=changed(SPOT, is_stopped_by_us=True,
                             vm_state='stopped')),
        decisions=(closed('rolled_back', status='kept'),)),
    'limits_are_kept': dataclasses.replace(
        GOOD, limits=(S.LimitUsage('budget of p1', 3, 2),)),
    'one_engine_acts': dataclasses.replace(GOOD, leaders=('e1', 'e2')),
    'hosts_with_guests_are_on': host('h1', {'normal': {'VCPU': 2}},
                                     is_off=True),
    'hosts_stop_switching': host('h1', {'normal': {'VCPU': 2}},
                                 power='waking'),
    'hosts_on_are_open': host('h1', {'normal': {'VCPU': 2}},
                              is_closed=True),
    'hosts_asleep_are_off': host('h1', {'normal': {'VCPU': 2}},
                                 power='asleep'),
    'needed_hosts_are_on': dataclasses.replace(
        servers(normal=changed(NORMAL, guest_on='')),
        hosts=tuple(dataclasses.replace(each, is_off=each.name == 'h1')
                    for each in GOOD.hosts)),
    'builds_end': servers(normal=changed(NORMAL, vm_state='building')),
    'hosts_are_reserved_once': dataclasses.replace(GOOD, reservations=tuple(
        S.Reservation(uuid, 'p1', frozenset(['h3'])) for uuid in 'ab')),
    'reserved_hosts_are_empty': dataclasses.replace(GOOD, reservations=(
        S.Reservation('a', 'p1', frozenset(['h1'])),)),
    'reserved_hosts_are_closed': dataclasses.replace(GOOD, reservations=(
        S.Reservation('a', 'p1', frozenset(['h3']),
                      strangers=frozenset(['normal'])),)),
    'reservations_get_hosts': dataclasses.replace(GOOD, reservations=(
        S.Reservation('a', 'p1', frozenset(),
                      available=frozenset(['h2'])),)),
    'requests_start_once': dataclasses.replace(GOOD, requests=(
        S.BacklogRequest('r', 1, frozenset(['normal', 'spot'])),)),
    'trusts_have_a_request': dataclasses.replace(
        GOOD, requests=(S.BacklogRequest('r', 1, is_over=True, trust='t'),),
        trusts=frozenset('t')),
}
#: What is broken as well: of the same fault they find another side.
ALSO = {
    'allocations_fit': set(),
    'nothing_is_left_open': set(),
    'done_is_done': {'victims_are_as_recorded'},
    'stand_ins_are_open': {'consumers_exist'},
    'guests_keep_their_space': {'guests_are_allocated', 'consumers_exist'},
    'hosts_with_guests_are_on': {'needed_hosts_are_on'},
}
_OPEN = {'nothing_is_left_open'}


class TestInvariants(unittest.TestCase):

    def test_a_cloud_in_order_breaks_none(self):
        self.assertEqual([], invariants.breaches(GOOD, is_at_rest=True))

    def test_each_finds_its_breach_and_no_other_does(self):
        for each in invariants.ALL:
            with self.subTest(each.name):
                snapshot = BROKEN[each.name]
                found = {text.partition(':')[0] for text in
                         invariants.breaches(snapshot, is_at_rest=True)}
                expected = {each.name} | ALSO.get(each.name, set())
                if any(item.is_open for item in snapshot.decisions):
                    expected |= _OPEN
                self.assertEqual(expected, found)

    def test_each_of_25_invariants_has_a_text(self):
        self.assertGreaterEqual(len(invariants.ALL), 25)
        for each in invariants.ALL:
            with self.subTest(each.name):
                sentence, _, reason = each.find.__doc__.partition('\n\n')
                self.assertTrue(sentence.strip().endswith('.'))
                self.assertTrue(reason.strip().endswith('.'))
                self.assertEqual(sentence.strip(), each.sentence)

    def test_open_decisions_break_no_invariants_at_rest(self):
        self.assertEqual([], invariants.breaches(decisions(CLAIMED)))
        self.assertEqual([], invariants.breaches(
            servers(spot=changed(SPOT, notice='d1'))))

    def test_a_server_is_built_once_its_host_is_repaired(self):
        waits = dataclasses.replace(
            host('h1', {'normal': {'VCPU': 2}}, power='failed'),
            servers={**GOOD.servers, 'normal': changed(
                NORMAL, host='', guest_on='')})
        self.assertEqual([], invariants.breaches(waits, is_at_rest=True))
        self.assertEqual(1, len(invariants.breaches(dataclasses.replace(
            waits, hosts=tuple(dataclasses.replace(each, power='on')
                               for each in waits.hosts)), is_at_rest=True)))

    def test_nova_does_not_withdraw_the_notice_of_a_resized_server(self):
        noticed = changed(SPOT, notice='d1', vm_state='resized')
        self.assertEqual([], invariants.breaches(dataclasses.replace(
            servers(spot=noticed), decisions=(
                closed('rolled_back', status='ending'),)), is_at_rest=True))

    def test_a_stopped_victim_keeps_its_notice_and_our_lock(self):
        self.assertEqual([], invariants.breaches(dataclasses.replace(
            servers(spot=changed(SPOT, notice='d1', is_locked_by_us=True)),
            decisions=(closed('done', status='stopped'),)), is_at_rest=True))

    def test_a_notice_that_is_over_and_a_lock_of_the_second_call(self):
        self.assertEqual([], invariants.breaches(act(
            notice_s=10, deadline_us=99_000_000)))
        self.assertEqual([], invariants.breaches(act(
            locked_by='owner', is_paused=True, is_first=False)))
