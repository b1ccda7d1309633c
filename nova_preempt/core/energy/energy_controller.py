# SPDX-License-Identifier: Apache-2.0
"""Controller of host power; see core.controller_step.

Step again at the same time until ``wake_at_us`` is later, and observe anew in
between: the intents of a round change what the next decides. Keep the memory
of a step once its intents are carried out: failures are then retried. First
hosts are woken for reservations and for waiting requests, then idle hosts are
noted, then power_plan decides which hosts are on, then each host takes its
next step, which power_steps decides.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import enum
from typing import TypeAlias

from nova_preempt.core import controller_step
from nova_preempt.core.energy import demand_forecast
from nova_preempt.core.energy import host_classification
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from nova_preempt.core.energy.energy_observation import MINUTE_US
from nova_preempt.core.energy.energy_observation import Host
from nova_preempt.core.energy.energy_observation import HostPower
from nova_preempt.core.energy.energy_observation import Observed
from nova_preempt.core.model import SECOND

#: States of hosts whose next step comes soon.
MOVING = (power_steps.EMPTYING, power_steps.SLEEPING, power_steps.WAKING)

_DEMAND = 'a request finds no other host'
_EXCLUDED = 'an operator has excluded it with [energy]excluded_hosts'


class StepPhase(enum.Enum):
    """A round of a step; the next one observes its effects."""

    NOTE = 'note idle hosts'
    DECIDE = 'decide which hosts are on'
    ADVANCE = 'take the next steps of hosts'


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State that one step keeps for the next; an empty one decides at once.

    :ivar noted_us: when idle hosts were noted last
    :ivar decided_us: the time of the last decision, or as if it had been then
    :ivar failed: (name, since when) of the failed hosts
    :ivar promised: hosts that are kept for requests
    :ivar queue_s: how long it takes to wake reserved hosts that are off
    :ivar required: how many hosts were to be on by the last decision
    :ivar rounds: the remaining rounds of the step of at_us
    """

    noted_us: int | None = None
    decided_us: int | None = None
    failed: frozenset[tuple[str, int]] = frozenset()
    promised: frozenset[str] = frozenset()
    queue_s: float = 0.0
    required: int = 0
    rounds: tuple[StepPhase, ...] = ()
    at_us: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Wake:
    """Power on a host that is off, or about to be."""

    host: str
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class PutToSleep:
    """Power off a host that is on."""

    host: str
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class CountIdleInterval:
    """Count one more interval of idleness for these hosts, and reset others.

    :param max_gap_s: see core.energy.power_plan.max_gap_s
    """

    hosts: frozenset[str]
    max_gap_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class Adopt:
    """Record the state of an unknown host whose service we have disabled."""

    host: str
    state: str
    why: str = 'its compute service was disabled by us'


@dataclasses.dataclass(frozen=True, slots=True)
class ForgetHosts:
    """Delete the power states of hosts that are gone."""

    hosts: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class ForgetPromises:
    """Delete promises of hosts that will not be on."""

    hosts: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Advance:
    """Take the next step of each of these hosts; see power_steps."""

    hosts: tuple[str, ...]


Intent: TypeAlias = (Wake | PutToSleep | CountIdleInterval | Adopt
                     | ForgetHosts | ForgetPromises | Advance)
Step: TypeAlias = controller_step.Step[Intent, Memory]


def step(observed: Observed, memory: Memory, now_us: int) -> Step:
    """Decide the power of hosts now; see the module."""
    if memory.rounds and memory.at_us == now_us:
        now, *later = memory.rounds
        memory = dataclasses.replace(memory, rounds=tuple(later))
        intents, memory = _ROUNDS[now](observed, memory, now_us)
    else:
        intents, memory = _begin(observed, memory, now_us)
    return controller_step.Step(
        tuple(intents), memory, now_us if memory.rounds
        else now_us + round(observed.options.step_s * SECOND))


def _begin(observed: Observed, memory: Memory,
           now_us: int) -> tuple[list[Intent], Memory]:
    """Wake the hosts that are needed, and choose the rounds that follow."""
    options, needed = observed.options, _needed(observed)
    note = _is_time(memory.noted_us, power_plan.NOTE_INTERVAL_S, now_us)
    # Failed hosts are to be replaced at once.
    decide = bool(_failed(observed) - memory.failed) or _is_time(
        memory.decided_us, options.switch_interval_s, now_us)
    due, left = _due(observed, needed, now_us)
    promised = wake_choice.classify_promises(observed.promised,
        lambda name: _state(observed, name), lambda names: _switchable(
        observed, names), lambda: observed.recent_hosts)
    intents: list[Intent] = [
        Wake(name, 'a reservation of the host begins') for name in due]
    if promised.lost:
        intents.append(ForgetPromises(promised.lost))
    intents += _wakes(observed, [name for name in promised.coming
                                 if name not in due], left)
    rounds = []
    if note:
        rounds.append(StepPhase.NOTE)
    if decide:
        rounds.append(StepPhase.DECIDE)
    if rounds or intents or _names(observed, MOVING):
        rounds.append(StepPhase.ADVANCE)
    return intents, dataclasses.replace(
        memory, promised=promised.kept, queue_s=_queue_s(observed, needed),
        rounds=tuple(rounds), at_us=now_us)


def _failed(observed: Observed) -> frozenset[tuple[str, int]]:
    return frozenset((name, host.since_us) for name, host
                     in observed.in_state[power_steps.FAILED].items())


def _is_time(done_us: int | None, pause_s: float, now_us: int) -> bool:
    # A clock that was set back must not stop the controller.
    return done_us is None or not (0 <= now_us - done_us < pause_s * SECOND)


def _needed(observed: Observed) -> Mapping[str, float]:
    """Return in how many seconds hosts are needed that may have to wake."""
    options = observed.options
    return observed.needed(
        max(host_classification.HORIZON_S, options.boot_timeout_s)
        + options.queue_s(sum(len(observed.in_state[state])
                              for state in host_classification.OFF)))


def _due(observed: Observed, needed: Mapping[str, float],
         now_us: int) -> tuple[tuple[str, ...], int]:
    """Return hosts to wake for reservations, and how many more may wake."""
    options = observed.options
    names = _switchable(observed, [name for name in needed if _state(
        observed, name) in host_classification.OFF])
    due = power_plan.due((_start(observed, name, needed[name])
                          for name in names),
                         options.max_wakes_per_minute, options.step_s)
    wakes, _ = _left(observed, now_us)
    return due[:wakes], wakes - len(due[:wakes])


def _note(observed: Observed, memory: Memory,
          now_us: int) -> tuple[list[Intent], Memory]:
    """Count for how long hosts have been idle."""
    memory = dataclasses.replace(memory, noted_us=now_us)
    if not observed.is_whole:
        return [], memory
    hosts = observed.hosts
    intents: list[Intent] = []
    if gone := frozenset(observed.states.keys() - hosts.keys()):
        intents.append(ForgetHosts(gone))
    intents += [
        # Left so by a crash, or by an engine with another database.
        Adopt(name, power_steps.adopted(host.up)) for name,
        host in hosts.items()
        if host.is_ours and _state(observed, name) == power_steps.ON]
    idle = frozenset(
        name for name, host in hosts.items() if not host.servers
        and host_classification.is_usable(_state(observed, name), up=host.up,
                                          disabled=host.disabled)
        and observed.is_empty(name))
    intents.append(CountIdleInterval(
        idle, power_plan.max_gap_s(observed.options.step_s)))
    return intents, memory


def _decide(observed: Observed, memory: Memory,
            now_us: int) -> tuple[list[Intent], Memory]:
    """Begin to wake hosts, or to put them to sleep."""
    memory = dataclasses.replace(memory, decided_us=now_us,
                                 failed=_failed(observed))
    if not observed.is_whole:
        return [], memory
    options = observed.options
    wakes, sleeps = _left(observed, now_us)
    now_s, step_s = now_us // SECOND, options.switch_interval_s
    switches = power_plan.decide(
        _candidates(observed, memory),
        options.forecast([
            load for window in demand_forecast.windows(now_s, step_s)
            for load in observed.loads(*window)], now_s, step_s),
        dataclasses.replace(options.policy, minimum_of=observed.minimums,
                            max_wakes=wakes, max_sleeps=sleeps))
    why = f'{switches.required} hosts are needed'
    if len(switches.wake) == wakes or len(switches.sleep) == sleeps:
        # As many as a minute allows: there may be more to do in the next.
        memory = dataclasses.replace(
            memory, decided_us=now_us + MINUTE_US - step_s * SECOND)
    return ([*(Wake(name, why) for name in switches.wake),
             *(PutToSleep(name, why) for name in switches.sleep)],
            dataclasses.replace(memory, required=switches.required))


def _candidates(observed: Observed,
                memory: Memory) -> list[power_plan.PowerHost]:
    """Return the hosts that count, as core.energy.power_plan has them."""
    options, needed = observed.options, _needed(observed)
    efficiencies = observed.efficiencies
    horizon_s = host_classification.HORIZON_S + _queue_s(observed, needed)
    states = observed.states
    found = []
    for name, host in observed.hosts.items():
        powered = states.get(name)
        state = power_steps.ON if powered is None else powered.state
        on = host_classification.is_on(
            state, operators=host.is_operators,
            usable=host_classification.is_usable(
                state, up=host.up, disabled=host.disabled))
        if on is None:
            continue
        reserved, due = host_classification.reserved(
            _start(observed, name, needed[name]) if name in needed else None,
            horizon_s, options.max_wakes_per_minute, options.step_s, on=on)
        found.append(power_plan.PowerHost(
            name, on, on and _is_busy(name, powered, host, memory),
            powered.idle_intervals if powered else 0, efficiencies.get(name),
            reserved, due, options.is_excluded(name), host.aggregates))
    return found


def _is_busy(name: str, state: HostPower | None, host: Host,
             memory: Memory) -> bool:
    """Tell whether a host has servers, as far as it was observed yet."""
    return state is None or host_classification.is_busy(
        state.state, state.idle_intervals, servers=bool(host.servers),
        looked_at=memory.noted_us is None or state.since_us < memory.noted_us,
        promised=name in memory.promised)


def _advance(observed: Observed, memory: Memory,
             now_us: int) -> tuple[list[Intent], Memory]:
    # Hosts in other states are looked at as seldom as idle ones.
    names = _names(observed, power_steps.NOT_ON if memory.noted_us == now_us
                   else MOVING)
    return [Advance(names)] if names else [], memory


_ROUNDS = {StepPhase.NOTE: _note, StepPhase.DECIDE: _decide,
           StepPhase.ADVANCE: _advance}


# -- queries about hosts that are off ----------------------------------------

def off(observed: Observed, memory: Memory, now_us: int, name: str,
        stopped: str = '') -> host_classification.OffHost:
    """Tell whether a host that is not on will be on in time.

    :param stopped: why no host is switched now, '' if hosts are
    """
    host, options = observed.states[name], observed.options
    return host_classification.off(
        host.state, (now_us - host.since_us) / SECOND, host.boots,
        lead_s=options.lead_s(host), queue_s=memory.queue_s,
        stopped=stopped or (_EXCLUDED if options.is_excluded(name) else ''))


def sleepers(observed: Observed, memory: Memory, now_us: int,
             rooms: Mapping[str, int]) -> list[wake_choice.SleepingHost]:
    """Return the hosts that can wake for a request, see wake_choice.promise().

    :param rooms: how many servers of the request fit on hosts
    """
    efficiencies = observed.efficiencies
    return [wake_choice.SleepingHost(name, rooms[name], observed.states[
        name].state == power_steps.WAKING, bool(off(observed, memory, now_us,
        name).why_late), efficiencies.get(name)) for name in _switchable(
        observed, [name for name in rooms if _state(observed,
        name) in power_steps.COMING])]


def wakes(observed: Observed, now_us: int, names: Iterable[str]) -> list[Wake]:
    """Return as many of a request's hosts as may wake now, in order."""
    return _wakes(observed, names, _left(observed, now_us)[0])


def ready_s(observed: Observed, names: Collection[str]) -> int:
    """Return how long it may take until all of these hosts are on."""
    options = observed.options
    to_wake = [name for name in observed.promised if _state(observed, name)
               in (*host_classification.OFF, power_steps.SLEEPING)]
    # Their turn is in the next minute at the earliest.
    ahead = max((position + options.max_wakes_per_minute for position, name
                 in enumerate(to_wake) if name in names), default=0)
    return (options.boot_s(map(observed.states.get, names))
            + round(options.queue_s(ahead)))


def _wakes(observed: Observed, names: Iterable[str], most: int) -> list[Wake]:
    return [Wake(name, _DEMAND) for name in names
            if _state(observed, name) in host_classification.OFF][:most]


def _left(observed: Observed, now_us: int) -> tuple[int, int]:
    return observed.options.left(
        observed.changed_since(now_us - MINUTE_US), now_us)


def _names(observed: Observed, states: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(
        name for state in states for name in observed.in_state[state]))


def _state(observed: Observed, name: str) -> str:
    host = observed.states.get(name)
    return power_steps.ON if host is None else host.state


def _switchable(observed: Observed, names: Collection[str]) -> list[str]:
    """Return the hosts that may be switched: not excluded or disabled."""
    names = [name for name in names if not observed.options.is_excluded(name)]
    hosts = observed.recent_hosts if names else {}
    return [name for name in names
            if name in hosts and not hosts[name].is_operators]


def _start(observed: Observed, name: str,
        in_s: float) -> power_plan.ReservationStart:
    return power_plan.ReservationStart(name, in_s,
                            observed.options.lead_s(observed.states.get(name)))


def _queue_s(observed: Observed, names: Iterable[str]) -> float:
    """Return how long it takes to wake the hosts of these that are off."""
    return observed.options.queue_s(sum(
        _state(observed, name) in host_classification.OFF for name in names))
