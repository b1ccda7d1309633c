# SPDX-License-Identifier: Apache-2.0
"""The energy controller against hosts that fail at will."""

from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core.energy import demand_forecast
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy.power_steps import Action
from nova_preempt.core.energy.power_steps import Power
from nova_preempt.core.model import SECOND
from tests.unit.core import machines
from tests.unit.core.energy import model_hosts

NAMES = ('a', 'b', 'c', 'd')
EXCLUDED = 'd'
MINUTE_US = 60 * SECOND
OPTIONS = energy_observation.Options(
    power_plan.PowerPolicy(idle_intervals=2, minimum=1), boot_timeout_s=300,
    forecast=demand_forecast.max_window, switch_interval_s=60,
    max_wakes_per_minute=2, max_sleeps_per_minute=1, excluded=(EXCLUDED,),
    step_s=30)
#: The longest time until a promised host is on once the faults have ended: a
#: host that failed is tried again, is switched off hard, and boots.
BOUND_S = (power_steps.FAILED_RETRY_S + power_steps.POWER_OFF_TIMEOUT_S
           + 4 * OPTIONS.boot_timeout_s + 600)

names = st.sampled_from(NAMES)


class EnergyMachine(machines.Machine):
    """State machine of hosts and the process that powers them.

    :ivar reserved: {name: when its reservation starts}
    :ivar requested: names of hosts that requests wait for
    :ivar woken: when hosts that were off were woken
    """

    options = OPTIONS
    efficiencies: dict = {}
    minimums: dict = {}

    def __init__(self):
        super().__init__()
        self.hosts = self.recent_hosts = self.states = {
            name: model_hosts.ModelHost(reported_us=self.now_us)
            for name in NAMES}
        self.memory = energy_controller.Memory()
        self.is_whole = True
        self.seen = {}
        self.reserved, self.requested = {}, []
        self.woken, self.slept = {}, {}
        self.nova_answers = True

    # -- what the controller observes --------------------------------------

    @property
    def in_state(self):
        return {state: {name: host for name, host in self.states.items()
                        if host.state == state}
                for state in power_steps.STATES}

    @property
    def promised(self):
        return tuple(self.requested)

    def changed_since(self, since_us):
        return [host for host in self.states.values()
                if host.since_us > since_us]

    def is_empty(self, name):
        return not self.hosts[name].servers

    def needed(self, within_s):
        return {name: (at_us - self.now_us) / SECOND
                for name, at_us in self.reserved.items()
                if at_us - self.now_us <= within_s * SECOND}

    def loads(self, since_s, until_s):
        return [demand_forecast.Load(until_s - 1, sum(
            bool(host.servers) for host in self.hosts.values()))]

    # -- what others do ----------------------------------------------------

    @stateful.rule(name=names)
    def server_comes(self, name):
        """A server is scheduled while its host seems to be open."""
        host = self.hosts[name]
        if host.up and (not host.disabled or self.now_us - host.disabled_us
                        < power_steps.EMPTY_CHECKS_S * SECOND):
            host.servers += 1

    @stateful.rule(name=names)
    def servers_leave(self, name):
        self.hosts[name].servers = 0

    @stateful.rule(name=names, is_disabled=st.booleans())
    def operator_disables(self, name, is_disabled):
        host = self.hosts[name]
        host.disabled_us = self.now_us if is_disabled else None
        host.is_ours = False

    @stateful.rule(name=names, is_on=st.booleans())
    def operator_powers(self, name, is_on):
        if not self.hosts[name].servers:
            self.hosts[name].power(is_on, self.now_us)

    @stateful.rule(name=names, answers=st.booleans(), hangs=st.booleans())
    def host_fails(self, name, answers, hangs):
        self.hosts[name].answers = answers
        self.hosts[name].hangs = hangs

    @stateful.rule(answers=st.booleans(), is_whole=st.booleans())
    def nova_fails(self, answers, is_whole):
        self.nova_answers, self.is_whole = answers, is_whole

    @stateful.rule(name=names, in_s=st.sampled_from((0, 300, 1200)))
    def is_reserved(self, name, in_s):
        self.reserved[name] = self.now_us + in_s * SECOND

    @stateful.rule(name=names)
    def reservation_ends(self, name):
        self.reserved.pop(name, None)

    @stateful.rule(name=names)
    def request_waits(self, name):
        if name not in self.requested and (
                self.states[name].state in power_steps.COMING):
            self.requested.append(name)

    @stateful.rule()
    def process_dies(self):
        self.memory, self.seen = energy_controller.Memory(), {}

    @stateful.rule(steps=st.sampled_from((1, 1, 3, 10, 10, 20, 50)))
    def runs(self, steps):
        for _ in range(steps):
            self.pass_time(OPTIONS.step_s)
            self.work()

    def pass_time(self, seconds):
        self.now_us += seconds * SECOND
        for host in self.hosts.values():
            host.pass_time(self.now_us)

    # -- what the process does ---------------------------------------------

    @stateful.rule()
    def work(self):
        for _ in range(5):
            found = energy_controller.step(self, self.memory, self.now_us)
            self.memory = found.memory
            for intent in found.intents:
                self.carry_out(intent)
            if found.wake_at_us > self.now_us:
                return
        raise AssertionError('a step has no end')

    def carry_out(self, intent):
        match intent:
            case energy_controller.Wake(name):
                self.check_switch(name)
                if self.wakes_left():
                    self.move(name, power_steps.WAKING, (
                        power_steps.EMPTYING, power_steps.ASLEEP))
            case energy_controller.PutToSleep(name):
                self.check_sleep(name)
                self.move(name, power_steps.EMPTYING, (power_steps.ON,))
                self.check_rate(name, self.slept, power_steps.EMPTYING,
                                OPTIONS.max_sleeps_per_minute)
            case energy_controller.CountIdleInterval(idle):
                for name, host in self.states.items():
                    host.idle_intervals = (host.idle_intervals + 1
                                           if name in idle else 0)
            case energy_controller.Adopt(name, state):
                assert self.hosts[name].is_ours
                self.move(name, state, (power_steps.ON,))
            case energy_controller.ForgetPromises(lost):
                self.requested = [name for name in self.requested
                                  if name not in lost]
            case energy_controller.Advance(moving):
                for name in moving:
                    self.advance(name)

    def wakes_left(self):
        return OPTIONS.left(self.states.values(), self.now_us)[0]

    def move(self, name, state, before, boots=0):
        host = self.states[name]
        if host.state in before:
            host.state, host.since_us, host.boots = state, self.now_us, boots
            host.idle_intervals = 0
            if state == power_steps.WAKING and not host.is_powered and (
                    power_steps.ON not in before):
                self.check_rate(name, self.woken, state,
                                OPTIONS.max_wakes_per_minute)
            self.seen.pop(name, None)

    def facts(self, name, **known):
        host = self.hosts[name]
        seen = self.seen.get(name)
        if seen is None or (seen.state, seen.since_us) != (host.state,
                                                           host.since_us):
            seen = self.seen[name] = model_hosts.Sighting(
                host.state, host.since_us, host.reported_us)
        if not host.disabled:
            seen.closed_us = None
        elif seen.closed_us is None:
            seen.closed_us = self.now_us
        return power_steps.HostFacts(
            host.state, (self.now_us - host.since_us) / SECOND,
            0 if seen.closed_us is None else
            (self.now_us - seen.closed_us) / SECOND, host.up,
            host.up and host.reported_us != seen.reported_us, host.disabled,
            host.is_ours, host.boots, 0 if seen.asked_us is None else
            (self.now_us - seen.asked_us) / SECOND, **known)

    def advance(self, name):
        """Take the steps of a host that are possible now."""
        known = {}
        for _ in range(20):
            facts = self.facts(name, **known)
            found = power_steps.next_step(facts, OPTIONS.boot_timeout_s)
            if found.act is Action.WAIT or not self.act(name, found, facts,
                                                        known):
                return
        raise AssertionError(f'{found} again and again')

    def act(self, name, found, facts, known):
        """Carry out a step; return whether there is more to do."""
        host = self.hosts[name]
        if found.act is Action.ASK_POWER:
            known['power'] = Power.UNKNOWN if not host.answers else (
                Power.ON if host.is_powered else Power.OFF)
            return True
        if not self.nova_answers:
            return False
        if found.act is Action.LOOK:
            known.update(empty=not host.servers, running=bool(host.servers))
            return True
        if found.act is Action.DISABLE:
            assert not host.disabled
            host.disabled_us, host.is_ours = self.now_us, True
            return False
        if found.act is Action.MOVE:
            return self.take(name, found, facts, known)
        return self.switch(name, found.act, known)

    def switch(self, name, act, known):
        host, seen = self.hosts[name], self.seen[name]
        if act is not Action.POWER_ON:
            self.check_cut(name)
        if seen.asked_us is None:
            seen.asked_us = self.now_us
        if act is Action.POWER_ON:
            assert not host.is_operators, 'it powers on what is an operator\'s'
            if host.answers:
                host.power(True, self.now_us)
            return False
        known.clear()
        if act is Action.SWITCH_OFF:
            if host.answers:
                host.power(False, self.now_us)
            known['tried'] = True
        elif (host.answers and not host.hangs
              and host.goes_off_us is None):
            host.goes_off_us = self.now_us + 60 * SECOND
        return act is Action.SWITCH_OFF

    def take(self, name, found, facts, known):
        host = self.hosts[name]
        if power_steps.is_limited(found, facts) and not self.wakes_left():
            return False
        if found.enable:
            assert not host.is_operators, 'it enables what is an operator\'s'
            host.disabled_us, host.is_ours = None, False
        if host.state == power_steps.WAKING and found.state == power_steps.ON:
            host.boot_s = facts.asked_s or host.boot_s
        self.move(name, found.state, (host.state,), found.boots)
        if found.cycle:
            self.check_cut(name)
            host.power(False, self.now_us)
        known.clear()
        return found.state == power_steps.SLEEPING

    # -- the laws ----------------------------------------------------------

    def check_cut(self, name):
        host = self.hosts[name]
        assert not host.servers, 'a host with servers is powered off'
        assert host.disabled and host.is_ours, 'an open host is powered off'
        assert name != EXCLUDED, 'an excluded host is powered off'

    def check_switch(self, name):
        assert name != EXCLUDED, 'it is to be left alone'
        assert not self.hosts[name].is_operators, 'it is an operator\'s'

    def check_sleep(self, name):
        self.check_switch(name)
        host = self.hosts[name]
        assert not host.servers or host.idle_intervals, 'it has servers'
        assert name not in self.requested, 'a request waits for it'
        start_us = self.reserved.get(name)
        assert start_us is None or (
            start_us - self.now_us > OPTIONS.boot_timeout_s * SECOND), (
            'a reservation needs it')
        on = [each for each, host in self.hosts.items()
              if each != name and host.state == power_steps.ON
              and host.up and not host.disabled]
        waking = self.in_state[power_steps.WAKING]
        assert len({*on, *waking}) >= OPTIONS.policy.minimum, 'none is left'

    def check_rate(self, name, switched_us, state, most):
        """Check that no more are on their way in a minute than may be."""
        switched_us[name] = self.now_us
        assert sum(self.now_us - when_us < MINUTE_US
                   and self.states[each].state == state
                   for each, when_us in switched_us.items()) <= most, (
            'too many in a minute')

    def teardown(self):
        """After the faults, hosts that are needed are on within a bound."""
        for host in self.hosts.values():
            host.answers, host.hangs = True, False
            if host.state == power_steps.ON:
                # That somebody else has powered it off is not for us to mend.
                host.power(True, self.now_us)
            if host.is_powered and host.boots_us is None:
                host.boots_us = self.now_us + model_hosts.BOOT_S * SECOND
        self.nova_answers = self.is_whole = True
        needed = {*self.reserved, *self.requested, *(
            name for name, host in self.hosts.items() if host.servers)}
        for name in needed:
            self.reserved.setdefault(name, self.now_us)
        end_us = self.now_us + BOUND_S * SECOND
        while self.now_us < end_us:
            self.pass_time(OPTIONS.step_s)
            self.work()
        for name in needed - {EXCLUDED}:
            host = self.hosts[name]
            assert host.is_operators or (
                host.state == power_steps.ON and host.up
                and not host.disabled), (name, host)
        assert not self.in_state[power_steps.FAILED] or any(
            host.is_operators for host in self.hosts.values())


TestEnergyMachine = EnergyMachine.TestCase
TestEnergyMachine.settings = machines.settings(60, 40)
