# SPDX-License-Identifier: Apache-2.0
"""The eviction controller against a cloud that fails at will."""

import dataclasses

from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core import eviction_status
from nova_preempt.core.eviction import closing_rules
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import DELETING
from tests.unit.core import machines
from tests.unit.core import servers_of_machines
from tests.unit.core.servers_of_machines import HERE
from tests.unit.core.servers_of_machines import OFFLOADED
from tests.unit.core.servers_of_machines import THERE

TIMEOUT_S = 120
MIGRATE_TIMEOUT_S = 60
#: How long the rest of an eviction takes at most once the faults have ended.
BOUND_S = 60
UUIDS = ('a', 'b', 'c')
LAST_CALLS = frozenset(('force_delete', 'shelve', 'shelve_offload', 'stop',
                        'live_migrate', eviction_steps.LOCK))
BUSY = (DELETING | eviction_steps.SHELVING | eviction_steps.MOVING)

servers = st.sampled_from(UUIDS)
terms = st.builds(
    eviction_steps.VictimTerms, st.just(HERE),
    st.sampled_from(('delete', 'shelve', 'stop')),
    st.sampled_from((('delete', 'shelve', 'stop'), ('shelve',), ('stop',))),
    migrate=st.booleans(), for_good=st.booleans(), timeout_s=st.just(
        TIMEOUT_S), migrate_timeout_s=st.just(MIGRATE_TIMEOUT_S),
    rules=st.builds(eligibility.Rules, st.sampled_from(
        (eligibility.ADMIN, eligibility.ALL))), pinned=st.booleans())
all_terms = st.fixed_dictionaries(dict.fromkeys(
    UUIDS, st.tuples(terms, st.sampled_from((0, 0, 30, 60)))))


class EvictionMachine(machines.Machine):
    """Machine with one decision at a time and its victims.

    :ivar told_us: until when each victim was promised to be left alone
    :ivar asked: the first call for each victim, as recorded
    :ivar closed: the status of each victim that has ended
    """

    def __init__(self):
        super().__init__()
        self.servers = {uuid: servers_of_machines.ModelServer(uuid)
                        for uuid in UUIDS}
        self.memory = None
        self.is_up = self.is_claimed = True
        self.why = ''

    # -- the cloud ---------------------------------------------------------

    @stateful.rule(uuid=servers, call=st.sampled_from(
        servers_of_machines.USER_CALLS), host=st.sampled_from((HERE, THERE)))
    def user_calls(self, uuid, call, host):
        server = self.servers[uuid]
        # Nova lets no owner start a server that an administrator has locked.
        if server.allows(call) and server.locked_by != 'admin':
            server.begin(call, host)

    @stateful.rule(uuid=servers, locked_by=st.sampled_from(
        ('', 'owner', 'admin')))
    def locks(self, uuid, locked_by):
        if not (self.memory and uuid in self.memory.pending
                and self.memory.pending[uuid].may_be_locked):
            self.servers[uuid].locked_by = locked_by

    @stateful.rule(uuid=servers, is_done=st.booleans(), frees=st.booleans(),
                   clears_host=st.booleans())
    def task_ends(self, uuid, is_done, frees, clears_host):
        server = self.servers[uuid]
        if server.call and is_done:
            server.finish(frees=frees, clears_host=clears_host)
        elif server.call:
            server.fail()

    @stateful.rule(uuid=servers)
    def hangs(self, uuid):
        self.servers[uuid].hangs = True

    @stateful.rule(uuid=servers)
    def allocations_are_freed(self, uuid):
        if not self.servers[uuid].exists:
            self.servers[uuid].holds.clear()

    @stateful.rule(is_up=st.booleans(), is_claimed=st.booleans(),
                   why=st.sampled_from(('', '', 'the request is gone')))
    def cloud_changes(self, is_up, is_claimed, why):
        self.is_up, self.is_claimed, self.why = is_up, is_claimed, why

    # -- the service -------------------------------------------------------

    @stateful.initialize(of=all_terms)
    def begin(self, of):
        self.decide(of)

    @stateful.precondition(lambda self: self.memory is None)
    @stateful.rule(of=all_terms)
    def decide(self, of):
        """Begin to evict the servers that may be victims."""
        self.victims = {}
        for uuid, (each, notice_s) in of.items():
            seen = self.servers[uuid].observed(self.now_us)
            if seen and seen.host == HERE and seen.task_state is None and (
                    not each.rules.counts(seen.locked_by)
                    and eligibility.next_call(each.action, seen.vm_state)):
                self.victims[uuid] = eviction_values.Victim(
                    uuid, 'd', each, notice_s)
        self.told_us = dict.fromkeys(self.victims, self.now_us)
        self.asked, self.closed, self.why = {}, {}, ''
        self.is_claimed = True
        self.memory = eviction_controller.begin(
            self.victims.values(), self.now_us) if self.victims else None

    @stateful.precondition(lambda self: self.memory is not None)
    @stateful.rule()
    def process_dies(self):
        """The preemption is rolled back; the memory is lost."""
        self.roll_back()

    def roll_back(self):
        for uuid in self.memory.pending:
            server = self.servers[uuid]
            status = closing_rules.closing_status(
                server.observed(self.now_us), HERE, self.asked.get(uuid, ''))
            if status == eviction_status.GONE:
                assert not server.exists, server
            elif status == eviction_status.KEPT:
                assert server.host == HERE and server.task_state not in (
                    DELETING | eviction_steps.SHELVING), server
            elif status == eviction_status.MIGRATED:
                assert server.host != HERE, server
        self.memory = None

    @stateful.precondition(lambda self: self.memory is not None)
    @stateful.rule(pauses_s=st.lists(st.sampled_from((1, 1, 5, 15)),
                                     min_size=1, max_size=8))
    def runs(self, pauses_s):
        for pause_s in pauses_s:
            if self.memory is not None:
                self.work()
                self.now_us += pause_s * SECOND

    def work(self):
        """Carry out a round as handover.victim_evictor does."""
        facts = {'seen': {}, 'holds': {}, 'hosts': {}, 'is_held': None,
                 'unwanted': {'d': self.draw(self.why, self.why, None)}}
        for _ in range(12):
            found = eviction_controller.step(
                eviction_values.Observed(self.victims, {'d': HERE}, **facts),
                self.memory, self.now_us)
            self.memory = found.memory
            for intent in found.intents:
                self.carry_out(intent, facts)
            if self.memory.is_over:
                self.check_end()
                return
            if self.memory.pending and not any(isinstance(
                    intent, eviction_values.Read)
                    for intent in found.intents):
                return
        raise AssertionError(f'it reads again and again: {found}')

    def carry_out(self, intent, facts):
        if isinstance(intent, eviction_values.GiveNotice):
            for uuid in intent.victims:
                self.told_us[uuid] = self.now_us + round(
                    self.victims[uuid].notice_s * SECOND)
                self.memory = self.memory.note(
                    uuid, notice_until_us=self.told_us[uuid])
        elif isinstance(intent, eviction_values.Read):
            self.read(intent, facts)
        elif isinstance(intent, eviction_values.CallNova):
            self.call_nova(intent, facts)
        elif isinstance(intent, eviction_values.LockVictim):
            self.lock(intent, facts)
        elif isinstance(intent, eviction_values.CloseVictim):
            self.close(intent)

    def read(self, intent, facts):
        is_read = self.draw(True, True, True, False)
        if isinstance(intent, eviction_values.ReadServer):
            facts['seen'][intent.victim] = (
                self.servers[intent.victim].observed(self.now_us)
                if is_read else None, is_read)
        elif isinstance(intent, eviction_values.ReadAllocation):
            seen, known = facts['seen'][intent.victim]
            assert known
            held = self.servers[intent.victim].holds
            facts['holds'][intent.victim] = (
                bool(held if seen is None else HERE in held)
                if is_read else None)
        elif isinstance(intent, eviction_values.CheckHostUp):
            facts['hosts'][intent.host] = self.is_up if is_read else None
        else:
            facts['is_held'] = self.is_claimed and is_read

    def call_nova(self, intent, facts):
        uuid = intent.victim
        self.check_call(uuid, intent.method, facts)
        if intent.is_recorded:
            self.asked.setdefault(uuid, intent.method)
        assert uuid in self.asked, 'the call is not recorded'
        if facts['unwanted']['d'] != '':
            return
        self.memory = dataclasses.replace(self.memory.note(
            uuid, asked=intent.method, asked_us=self.now_us),
            acted_us=self.now_us)
        self.call(self.change, uuid, intent.method)

    def change(self, uuid, method, at_once):
        server = self.servers[uuid]
        if server.allows(method):
            server.begin(method)
            if at_once and server.call:
                server.finish(frees=self.draw(True, False),
                              clears_host=self.draw(True, False))

    def lock(self, intent, facts):
        uuid = intent.victim
        self.check_call(uuid, eviction_steps.LOCK, facts)
        seen, _ = facts['seen'][uuid]
        assert seen.vm_state == 'stopped', seen
        self.memory = self.memory.note(uuid, asked=eviction_steps.LOCK)

        def lock(at_once):
            self.servers[uuid].locked_by = 'admin'

        if self.call(lock):
            self.memory = dataclasses.replace(
                self.memory.note(uuid, locked_us=self.now_us),
                acted_us=self.now_us)

    def close(self, intent):
        uuid, server = intent.victim, self.servers[intent.victim]
        assert uuid not in self.closed
        if intent.first is eviction_steps.StepKind.FREE:
            assert not server.exists, 'it frees what a server uses'
            server.holds.clear()
        if intent.status == eviction_status.GONE:
            assert not server.exists and not server.holds, server
        elif intent.status == eviction_status.SHELVED:
            assert server.vm_state == OFFLOADED, server
            assert HERE not in server.holds, server
        elif intent.status == eviction_status.MIGRATED:
            assert server.host == THERE, server
            assert HERE not in server.holds, server
            assert not self.victims[uuid].terms.for_good
        else:
            assert intent.status == eviction_status.STOPPED
            assert (server.vm_state, server.locked_by) == (
                'stopped', 'admin'), server
            assert self.victims[uuid].terms.action == 'stop'
        if self.draw(True, True, False):
            self.closed[uuid] = intent.status
            self.memory = self.memory.close(uuid)

    # -- the laws ----------------------------------------------------------

    def check_call(self, uuid, method, facts):
        """Check that Nova may be called for a victim now."""
        seen, known = facts['seen'][uuid]
        terms = self.victims[uuid].terms
        assert known and seen is not None, 'nobody knows how it is'
        assert uuid not in self.closed, 'a second end'
        assert facts['unwanted']['d'] == '', 'nobody needs the capacity'
        assert self.has_begun_earlier(uuid) or facts['is_held'], 'no claim'
        if method == 'abort_migration':
            # Nova refuses that if another task has begun meanwhile.
            assert seen.task_state and terms.migrate, seen
            return
        if method not in LAST_CALLS:
            # That leaves it where it is.
            return
        assert seen.task_state not in BUSY, 'it is ended twice'
        for other, until_us in self.told_us.items():
            # Nobody runs whose notice counts.
            if other in self.closed or self.memory.unwarned & {other}:
                continue
            record, is_known = facts['seen'].get(other, (None, True))
            assert until_us <= self.now_us or self.asked or (
                is_known and (record is None or record.vm_state
                              not in eligibility.RUNNING)), 'the notice'
        if not terms.for_good and method != eviction_steps.LOCK:
            assert facts['hosts'].get(HERE) is True, 'its host may be down'
            assert seen.host == HERE, 'it has left'
        assert not terms.rules.counts(seen.locked_by) or (
            uuid in self.asked), 'it is locked'
        assert method in _may_call(terms), method

    def has_begun_earlier(self, uuid):
        return bool(self.asked)

    def check_end(self):
        """Check that every victim has ended, or stays for a reason."""
        memory = self.over = self.memory
        for uuid in self.victims:
            assert (uuid in self.closed or uuid in memory.stuck
                    or memory.refusals or memory.unwanted), uuid
        for uuid in memory.stuck:
            assert uuid not in self.closed
        if not memory.refusals and not memory.unwanted and not memory.stuck:
            self.memory = None
        else:
            self.roll_back()

    def teardown(self):
        """After the faults, the eviction ends within a bound."""
        self.faulty = False
        if self.memory is None:
            return
        if self.memory.has_notice:
            left_us = [each.acting_since_us for each
                       in self.memory.pending.values()
                       if each.acting_since_us is not None]
            in_time = not left_us or self.now_us - min(left_us) <= (
                TIMEOUT_S - BOUND_S - 10) * SECOND
        else:
            in_time = True
        self.is_up = self.is_claimed = True
        end_us = max(self.now_us, *self.told_us.values()) + (
            TIMEOUT_S + MIGRATE_TIMEOUT_S + BOUND_S) * SECOND
        while self.memory is not None:
            self.end_tasks()
            self.work()
            assert self.now_us <= end_us, self.memory
            self.now_us += SECOND
        # Nothing keeps a victim that had the time to end.
        for uuid in self.over.stuck if in_time else ():
            server = self.servers[uuid]
            terms = self.victims[uuid].terms
            assert server.hangs or eviction_actions.next_call(
                terms.action, terms.allowed, server.vm_state) is None, server

    def end_tasks(self):
        for server in self.servers.values():
            if server.call and not server.hangs:
                server.finish()
            if not server.exists:
                server.holds.clear()


def _may_call(terms):
    """Return the calls that may end a victim on these terms."""
    found = {'delete': {'force_delete'}, 'shelve': {'shelve'},
             'stop': {'stop', eviction_steps.LOCK}}
    calls = found[terms.action] | {'force_delete', 'shelve_offload'}
    for action in terms.allowed:
        if action != 'stop':
            calls |= found[action]
    return calls | ({'live_migrate'} if terms.migrate else set())


TestEvictionMachine = EvictionMachine.TestCase
TestEvictionMachine.settings = machines.settings(100, 40)
