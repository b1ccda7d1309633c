# SPDX-License-Identifier: Apache-2.0
"""Controller of evictions: the victims of decisions, from notice to end.

All victims get their notice together, and none is evicted before the longest
notice is over: until then the request can be cancelled, and no victim has
ended in vain. For the same reason one victim that must not end spares all
others.

The caller steps in rounds. In a round it steps again while the step returns
reads, and then carries out the other intents. An intent that fails because too
much has changed is left to the next round.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses

from nova_preempt.core import controller_step
from nova_preempt.core import eligibility
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.eviction.eviction_steps import Progress
from nova_preempt.core.eviction.eviction_steps import StepKind
from nova_preempt.core.eviction.eviction_values import Memory
from nova_preempt.core.eviction.eviction_values import Observed
from nova_preempt.core.eviction.eviction_values import Step
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer

#: How long a read of a victim may be acted on.
FRESH_S = 5.0

#: The shortest pause between two polls of a victim.
SHORTEST_S = 0.05
#: A pause is this share of the time waited so far, which bounds how late an
#: end is seen.
_SHARE = 0.1


def begin(victims: Iterable[eviction_values.Victim], now_us: int) -> Memory:
    """Return the Memory of victims whose eviction has not begun."""
    return Memory({
        victim.uuid: Progress(now_us + round(victim.notice_s * SECOND))
        for victim in victims}, now_us)


def step(observed: Observed, memory: Memory, now_us: int) -> Step:
    """Return what to do with the victims now, see controller_step.

    The eviction is done once Memory.is_over.
    """
    if not memory.has_notice:
        return _give_notice(observed, memory, now_us)
    known = memory.unwanted
    found = _step(observed, _drop_unwanted(observed, memory), now_us)
    spared = tuple(eviction_values.SpareVictim(uuid, why) for uuid, why
                   in found.memory.unwanted.items() if uuid not in known)
    return dataclasses.replace(found, intents=(*spared, *found.intents),
                               wake_at_us=_wake_at_us(observed, found.memory))


def _give_notice(observed: Observed, memory: Memory, now_us: int) -> Step:
    """Give notice, but to no victim whose host is down: it cannot end."""
    pending = [observed.victims[uuid] for uuid in memory.pending]
    looks = _looks_at_hosts(observed, pending)
    if looks:
        return controller_step.Step(looks, memory)
    unwarned = frozenset(
        victim.uuid for victim in pending if not victim.terms.for_good
        and observed.hosts[victim.terms.host] is False)
    return controller_step.Step(
        (eviction_values.GiveNotice(tuple(uuid for uuid in memory.pending
                                          if uuid not in unwarned)),),
        dataclasses.replace(memory, has_notice=True, unwarned=unwarned),
        now_us)


def _looks_at_hosts(observed: Observed,
                    victims: Iterable[eviction_values.Victim]
                    ) -> tuple[eviction_values.CheckHostUp, ...]:
    """Return a check of each host that was not checked in this round."""
    found: dict[str, str] = {}
    for victim in victims:
        if not victim.terms.for_good and (
                victim.terms.host not in observed.hosts):
            found.setdefault(victim.terms.host, victim.uuid)
    return tuple(eviction_values.CheckHostUp(host, uuid) for host,
                 uuid in found.items())


def _drop_unwanted(observed: Observed, memory: Memory) -> Memory:
    """Close the victims whose capacity is not needed any more."""
    unwanted = dict(memory.unwanted)
    for uuid in memory.pending:
        decision = observed.victims[uuid].decision
        why = observed.unwanted.get(decision)
        if why:
            unwanted.setdefault(decision, why)
            memory = memory.close(uuid)
    return dataclasses.replace(memory, unwanted=unwanted)


def _step(observed: Observed, memory: Memory, now_us: int) -> Step:
    looks: tuple[eviction_values.Read, ...] = tuple(
        eviction_values.ReadServer(uuid) for uuid in memory.pending
        if uuid not in observed.seen)
    if looks:
        return controller_step.Step(looks, memory)
    memory = _note_seen(observed, memory, now_us)
    waiting = [uuid for uuid, progress in memory.pending.items()
               if progress.acting_since_us is None]
    if waiting and may_begin(
            [(memory.pending[uuid], *observed.seen[uuid])
             for uuid in waiting], now_us):
        looks = _looks_at_hosts(observed,
                                map(observed.victims.__getitem__, waiting))
        if looks:
            return controller_step.Step(looks, memory)
        memory = dataclasses.replace(memory.note_all(
            {uuid: {"acting_since_us": now_us} for uuid in waiting}),
            acted_us=now_us)
    memory, steps = _next_steps(observed, memory, now_us)
    looks = tuple(_looks(observed, memory, steps))
    if looks:
        return controller_step.Step(looks, memory)
    return _act(observed, memory, steps)


def _note_seen(observed: Observed, memory: Memory, now_us: int) -> Memory:
    """Remember since when victims are gone or offloaded."""
    found: dict[str, dict[str, int | None]] = {}
    for uuid, progress in memory.pending.items():
        seen, known = observed.seen[uuid]
        terms = observed.victims[uuid].terms
        for name, is_so in (
                ("gone_us", eviction_steps.is_gone(seen, terms)),
                ("offloaded_us", seen is not None
                 and eviction_steps.is_held(seen))):
            if known and is_so != (getattr(progress, name) is not None):
                found.setdefault(uuid, {})[name] = now_us if is_so else None
    return memory.note_all(found) if found else memory


def _next_steps(observed: Observed, memory: Memory, now_us: int
                ) -> tuple[Memory, dict[str, eviction_steps.VictimStep]]:
    """Return the next step of each victim, replacing NEXT by what follows."""
    steps = {uuid: _next_step(observed, memory, uuid, now_us)
             for uuid in memory.pending}
    over = [uuid for uuid, found in steps.items() if found.what is
            StepKind.NEXT]
    if over:
        memory = dataclasses.replace(memory.note_all({
            uuid: {"migration_over": True, "asked": "", "asked_us": 0}
            for uuid in over}), acted_us=now_us)
        steps.update((uuid, _next_step(observed, memory, uuid, now_us))
                     for uuid in over)
    return memory, steps


def _next_step(observed: Observed, memory: Memory, uuid: str, now_us: int
               ) -> eviction_steps.VictimStep:
    seen, known = observed.seen[uuid]
    terms = observed.victims[uuid].terms
    return eviction_steps.next_step(
        seen, terms, memory.pending[uuid], now_us, known=known,
        holds=observed.holds.get(uuid), host_up=uuid not in memory.unwarned
        and observed.hosts.get(terms.host))


#: Steps that are taken only while the capacity is needed, and claimed.
_ON_SERVERS = frozenset((StepKind.ASK, StepKind.LOCK, StepKind.LEAVE_STOPPED))


def _looks(observed: Observed, memory: Memory,
           steps: Mapping[str, eviction_steps.VictimStep]) -> Iterator[
               eviction_values.Read]:
    """Yield the reads that these steps need first."""
    for uuid, found in steps.items():
        host = observed.victims[uuid].terms.host
        if found.what is StepKind.LOOK and uuid not in observed.holds:
            yield eviction_values.ReadAllocation(uuid)
        elif (found.what is StepKind.LOOK_AT_HOST
                and host not in observed.hosts):
            yield eviction_values.CheckHostUp(host, uuid)
    if (observed.is_held is None and not memory.has_begun
            and any(found.what in _ON_SERVERS for found in steps.values())):
        yield eviction_values.CheckClaimedCapacity()


def _act(observed: Observed, memory: Memory,
         steps: Mapping[str, eviction_steps.VictimStep]) -> Step:
    """Return the intents of these steps."""
    refusals = dict([(uuid, found.detail) for uuid, found in steps.items()
                     if found.what is StepKind.KEEP][:1])
    for uuid, found in steps.items():
        if found.what is StepKind.GIVE_UP:
            memory = dataclasses.replace(memory.close(uuid),
                                         stuck=memory.stuck | {uuid})
    may_act = memory.has_begun or bool(observed.is_held)
    intents: list[eviction_values.Intent] = [
        intent for uuid, found in steps.items() for intent
        in _intents(observed, memory, uuid, found, may_act)
        if isinstance(intent, eviction_values.CloseVictim) or not refusals]
    intents += [eviction_values.SpareVictim(uuid, why) for uuid,
                why in refusals.items()]
    looks: list[eviction_values.CheckHostUp] = []
    if not memory.pending and not refusals:
        looks, refusals = _lost_hosts(observed, memory)
    return controller_step.Step((*intents, *looks), dataclasses.replace(
        memory, refusals=refusals,
        is_over=bool(refusals) or not (memory.pending or looks)))


def _intents(observed: Observed, memory: Memory, uuid: str,
             found: eviction_steps.VictimStep,
             may_act: bool) -> Iterator[eviction_values.Intent]:
    """Yield the intents of one step with a victim.

    ``may_act``: whether the capacity that victims end for is claimed, or one
    of them was asked to end.
    """
    if found.what in _ON_SERVERS and not (may_act and observed.unwanted.get(
            observed.victims[uuid].decision) is not None):
        return
    if found.what is StepKind.ASK:
        asked = memory.pending[uuid].asked
        yield eviction_values.CallNova(uuid, found.detail, asked !=
                                       found.detail and (not asked or
                                       found.detail == "stop"))
    elif found.what is StepKind.LOCK:
        yield eviction_values.LockVictim(uuid)
    elif found.what in (StepKind.DONE, StepKind.FREE, StepKind.LEAVE_STOPPED):
        yield eviction_values.CloseVictim(uuid, found.detail, found.what)


def _lost_hosts(observed: Observed, memory: Memory
                ) -> tuple[list[eviction_values.CheckHostUp], dict[str, str]]:
    """Return hosts to check, and decisions whose host went down.

    Their victims have ended for a server that cannot be built there.
    """
    looks, lost = {}, {}
    for victim in observed.victims.values():
        host = observed.waiting.get(victim.decision)
        if host is None or victim.decision in memory.unwanted:
            continue
        if host not in observed.hosts:
            looks[host] = eviction_values.CheckHostUp(
                host, victim.uuid, eviction_values.HANDOVER_AGE_S)
        elif observed.hosts[host] is False:
            lost[victim.decision] = eviction_steps.host_is_down(host)
    return list(looks.values()), lost


def _wake_at_us(observed: Observed, memory: Memory) -> int | None:
    """Return when the notices are over, or else a victim times out."""
    notices = [each.notice_until_us for each in memory.pending.values()
               if each.acting_since_us is None]
    if notices:
        return max(notices)
    return min((each.acting_since_us + round(
                    eviction_steps.patience_s(observed.victims[uuid].terms)
                    * SECOND) for uuid, each in memory.pending.items()
                if each.acting_since_us is not None), default=None)


def notice_is_over(
    progress: Progress, seen: ObservedServer | None, known: bool, now_us: int,
) -> bool:
    """Return whether the notice is over, or is not needed."""
    if progress.acting_since_us is not None or eviction_steps.has_passed(
            0, progress.notice_until_us, now_us):
        return True
    # A server with a task may be starting again.
    return known and (
        seen is None
        or (
            seen.vm_state not in eligibility.RUNNING
            and seen.task_state is None))


def may_begin(
    victims: Iterable[tuple[Progress, ObservedServer | None, bool]],
    now_us: int, ) -> bool:
    """Return whether the victims of a request may be evicted.

    True once the longest notice is over, or is not needed any more.

    ``victims``: the first three arguments of notice_is_over() for each.
    """
    return all(
        notice_is_over(progress, seen, known, now_us)
        for progress, seen, known in victims)


def is_fresh(read_us: int, now_us: int) -> bool:
    """Return whether a read of a victim is recent enough to act on it.

    ``read_us``: when it was read, by whichever caller.
    """
    return now_us - read_us <= FRESH_S * SECOND


def pause_s(waited_s: float, interval_s: float) -> float:
    """Return how long to wait before the next poll of victims.

    Short at first, when much happens, then ever longer.

    ``waited_s``: the time since the last call; ``interval_s``: the longest
    pause.
    """
    return min(interval_s, max(SHORTEST_S, waited_s * _SHARE))
