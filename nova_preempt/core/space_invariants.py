# SPDX-License-Identifier: Apache-2.0

"""Invariants of space, and of the calls that end servers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from nova_preempt.core.energy import power_steps
from nova_preempt.core.invariant_snapshot import EndingCall
from nova_preempt.core.invariant_snapshot import Snapshot
from nova_preempt.core.model import SECOND

#: Operations whose decisions take no space for a server.
_TAKES_NO_SPACE = frozenset((
    "maximum_runtime", "headroom", "simulate", "reservation", "repair"))
#: How long before its time something may be done, in microseconds: clocks of
#: several hosts date it.
_SLACK_US = SECOND


def _over(used: Mapping[str, int], capacity: Mapping[str, int]
          ) -> Iterator[str]:
    for name, amount in sorted(used.items()):
        if amount > capacity.get(name, 0):
            yield f"{name} {amount} of {capacity.get(name, 0)}"


def _sum(amounts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in amounts:
        found.update(each)
    return found


def allocations_fit(snapshot: Snapshot) -> Iterator[str]:
    """No provider has more allocated than its capacity.

    Otherwise the same capacity would be allocated twice.
    """
    for host in snapshot.hosts:
        for text in _over(_sum(host.allocations.values()), host.capacity):
            yield f"{host.name} has {text} allocated"


def guests_keep_their_space(snapshot: Snapshot) -> Iterator[str]:
    """No server gets capacity that a guest still uses.

    Otherwise it would start before its victims have ended.
    """
    for host in snapshot.hosts:
        taken = [server.uses for server in snapshot.servers.values()
                 if server.guest_on == host.name]
        for consumer, amounts in host.allocations.items():
            server = snapshot.servers.get(consumer)
            if server is not None and server.guest_on != host.name:
                taken.append(amounts)
        for text in _over(_sum(taken), host.capacity):
            yield f"guests and servers to come on {host.name} use {text}"


def guests_are_allocated(snapshot: Snapshot) -> Iterator[str]:
    """A guest has allocations for the resources that it uses.

    Otherwise another server would get its capacity.
    """
    hosts = {host.name: host for host in snapshot.hosts}
    for server in snapshot.servers.values():
        host = hosts.get(server.guest_on)
        if host is not None and server.vm_state != "stopped":
            held = host.allocations.get(server.uuid, {})
            for text in _over(server.uses, held):
                yield f"{server.uuid} on {host.name} uses {text} allocated"


def consumers_exist(snapshot: Snapshot) -> Iterator[str]:
    """Consumers are servers of the host, migrations or stand-ins.

    Otherwise no server could use the capacity. A server that is to be built on
    a host that has failed waits until an operator repairs it.
    """
    known = snapshot.stand_ins() | snapshot.moves
    for host in snapshot.hosts:
        for consumer in sorted(host.allocations.keys() - known):
            server = snapshot.servers.get(consumer)
            if server is None or server.is_deleted:
                yield (f"{host.name} has allocations of {consumer}, which is "
                       "no server")
            elif server.host != host.name and (
                    server.host or host.power != power_steps.FAILED):
                yield (f"{host.name} has allocations of {consumer}, which is "
                       f"on {server.host or 'no host'}")


def refused_hold_nothing(snapshot: Snapshot) -> Iterator[str]:
    """A server for which no host was found has no allocations.

    Otherwise a refused request would hold capacity.
    """
    for host in snapshot.hosts:
        for uuid in sorted(host.allocations):
            server = snapshot.servers.get(uuid)
            if server is not None and server.refused:
                yield f"{uuid} was refused and has allocations on {host.name}"


def stand_ins_are_open(snapshot: Snapshot) -> Iterator[str]:
    """A stand-in holds capacity only while its decision is open.

    Otherwise no process would free it.
    """
    closed = {uuid: each for each in snapshot.decisions if not each.is_open
              for uuid in each.stand_ins}
    for host in snapshot.hosts:
        for consumer in sorted(host.allocations.keys() & closed.keys()):
            yield (f"stand-in {consumer} holds space on {host.name} for "
                   f"decision {closed[consumer].uuid}, which is "
                   f"{closed[consumer].status}")


def nothing_is_left_open(snapshot: Snapshot) -> Iterator[str]:
    """Every open decision has an owner that is alive.

    Otherwise it would never be closed.
    """
    for each in snapshot.open_decisions():
        yield (f"decision {each.uuid} is still {each.status}, "
               f"{'with' if each.has_owner else 'without'} an owner")


def _acts(snapshot: Snapshot, why: Callable[[EndingCall], str | bool],
          is_first: bool = False) -> Iterator[str]:
    """Yield the acts that break an invariant, and why.

    :param why: returns "" or False for an act that does not
    :param is_first: whether only the first act of a server counts
    """
    for act in snapshot.acts:
        found = (act.is_first or not is_first) and why(act)
        if found:
            yield f"{act.method} of {act.server}, {found}"


def acts_have_a_decision(snapshot: Snapshot) -> Iterator[str]:
    """Only victims of open decisions are evicted.

    Otherwise an eviction would have no reason and no record.
    """
    return _acts(snapshot, lambda act: act.decision is None
                 and "a victim of no open decision")


def owners_act(snapshot: Snapshot) -> Iterator[str]:
    """A process acts only on its own decisions.

    Another owner may be rolling them back.
    """
    return _acts(snapshot, lambda act: not act.is_by_owner
                 and "whose decision another process has")


def only_preemptible_end(snapshot: Snapshot) -> Iterator[str]:
    """Only preemptible servers are evicted.

    A normal server is never a victim.
    """
    return _acts(snapshot, lambda act: not act.is_preemptible
                 and "which is not preemptible")


def victims_are_on_the_host(snapshot: Snapshot) -> Iterator[str]:
    """No server is evicted that left the host of the decision.

    Its eviction would free no capacity there.
    """
    return _acts(snapshot, lambda act: act.is_away and "which has moved")


def migrations_are_awaited(snapshot: Snapshot) -> Iterator[str]:
    """No victim is evicted during its migration to another host.

    Its owner was told that it is migrated.
    """
    return _acts(snapshot, lambda act: act.is_moving and "which is moving")


def notices_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """No victim is evicted before its notice is over.

    Otherwise its owner could not save its work in time.
    """
    return _acts(snapshot, lambda act: bool(act.notice_s) and (
        "without a notice" if act.deadline_us is None
        else act.at_us + _SLACK_US < act.deadline_us
        and f"{(act.deadline_us - act.at_us) / SECOND:g} s too early"))


def space_is_held_first(snapshot: Snapshot) -> Iterator[str]:
    """No eviction begins unless its capacity is held.

    Otherwise another request could claim the freed capacity.
    """
    return _acts(snapshot, lambda act: bool(
        act.decision and not act.is_space_held and act.decision.server
        and act.decision.status == "claimed"
        and act.decision.operation not in _TAKES_NO_SPACE)
        and "whose stand-in holds nothing", is_first=True)


def ends_are_needed(snapshot: Snapshot) -> Iterator[str]:
    """No eviction begins for a server that is gone.

    Such an eviction would be useless.
    """
    return _acts(snapshot, lambda act: not act.is_wanted
                 and "for a server that is gone", is_first=True)


def locks_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """No eviction of a server with an honored lock begins.

    [preemption]honored_locks protect servers.
    """
    return _acts(snapshot, lambda act: act.locked_by
                 and f"locked by the {act.locked_by}", is_first=True)


def minimum_runtimes_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """No eviction begins before the minimum run time.

    The flavor promises this run time.
    """
    return _acts(
        snapshot, lambda act: act.at_us + _SLACK_US < act.promised_until_us
        and "which was promised to run on", is_first=True)


def pauses_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """No eviction begins while evictions are paused.

    A pause stops all evictions that have not begun.
    """
    return _acts(snapshot, lambda act: act.is_paused and "during a pause",
                 is_first=True)


#: Hold at every moment.
ALWAYS = (
    allocations_fit, guests_keep_their_space, stand_ins_are_open,
    acts_have_a_decision, owners_act, only_preemptible_end,
    victims_are_on_the_host, migrations_are_awaited, notices_are_kept,
    space_is_held_first, ends_are_needed, locks_are_kept,
    minimum_runtimes_are_kept, pauses_are_kept)
#: Hold once nothing is under way: no fault, no request, no eviction.
AT_REST = (
    guests_are_allocated, consumers_exist, refused_hold_nothing,
    nothing_is_left_open)
