# SPDX-License-Identifier: Apache-2.0

"""Invariants of space, and of the calls that end servers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from nova_preempt.core.cloud_snapshot import Snapshot
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

    Space would be promised twice.
    """
    for host in snapshot.hosts:
        for text in _over(_sum(host.allocations.values()), host.capacity):
            yield f"{host.name} has {text} allocated"


def guests_fit(snapshot: Snapshot) -> Iterator[str]:
    """The guests on a host fit into its capacity.

    A server was started before its victims had left.
    """
    guests: dict[str, list[Mapping[str, int]]] = {}
    for server in snapshot.servers.values():
        if server.guest_on:
            guests.setdefault(server.guest_on, []).append(server.uses)
    for host in snapshot.hosts:
        for text in _over(_sum(guests.get(host.name, ())), host.capacity):
            yield f"guests on {host.name} use {text}"


def guests_are_allocated(snapshot: Snapshot) -> Iterator[str]:
    """A guest has the allocations of what it uses.

    Somebody else would be given its space.
    """
    hosts = {host.name: host for host in snapshot.hosts}
    for server in snapshot.servers.values():
        host = hosts.get(server.guest_on)
        if host is not None and server.vm_state != "stopped":
            held = host.allocations.get(server.uuid, {})
            for text in _over(server.uses, held):
                yield f"{server.uuid} on {host.name} uses {text} allocated"


def consumers_exist(snapshot: Snapshot) -> Iterator[str]:
    """Consumers are servers of the host, moves, or open stand-ins.

    Space would be lost to everybody.
    """
    known = snapshot.stand_ins() | snapshot.moves
    for host in snapshot.hosts:
        for consumer in sorted(host.allocations.keys() - known):
            server = snapshot.servers.get(consumer)
            if server is None or server.is_deleted:
                yield (f"{host.name} has allocations of {consumer}, which is "
                       "no server")
            elif server.host != host.name:
                yield (f"{host.name} has allocations of {consumer}, which is "
                       f"on {server.host or 'no host'}")


def refused_hold_nothing(snapshot: Snapshot) -> Iterator[str]:
    """A server for which no host was found has no allocations.

    A refused request has left something behind.
    """
    for host in snapshot.hosts:
        for uuid in sorted(host.allocations):
            server = snapshot.servers.get(uuid)
            if server is not None and server.refused:
                yield f"{uuid} was refused and has allocations on {host.name}"


def stand_ins_are_open(snapshot: Snapshot) -> Iterator[str]:
    """A stand-in holds space only while its decision is open.

    Nobody would free it.
    """
    closed = {uuid: each for each in snapshot.decisions if not each.is_open
              for uuid in each.stand_ins}
    for host in snapshot.hosts:
        for consumer in sorted(host.allocations.keys() & closed.keys()):
            yield (f"stand-in {consumer} holds space on {host.name} for "
                   f"decision {closed[consumer].uuid}, which is "
                   f"{closed[consumer].status}")


def nothing_is_left_open(snapshot: Snapshot) -> Iterator[str]:
    """Each claim, stand-in and hold has an owner who is alive, or is gone.

    It would stay for ever.
    """
    for each in snapshot.open_decisions():
        yield (f"decision {each.uuid} is still {each.status}, "
               f"{'with' if each.has_owner else 'without'} an owner")


def acts_have_a_decision(snapshot: Snapshot) -> Iterator[str]:
    """Nobody is ended but as a victim of an open decision.

    A server would end without need or record.
    """
    for act in snapshot.acts:
        if act.decision is None:
            yield f"{act.method} of {act.server}, a victim of no open decision"


def only_preemptible_end(snapshot: Snapshot) -> Iterator[str]:
    """Only preemptible servers are ended.

    A normal server is never a victim.
    """
    for act in snapshot.acts:
        if not act.is_preemptible:
            yield f"{act.method} of {act.server}, which is not preemptible"


def notices_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """Nobody ends before the notice that was promised is over.

    Its owner would lose work that there was time to save.
    """
    for act in snapshot.acts:
        if act.notice_s and (act.deadline_us is None
                             or act.at_us + _SLACK_US < act.deadline_us):
            early = "no notice" if act.deadline_us is None else (
                f"{(act.deadline_us - act.at_us) / SECOND:g} s before its end")
            yield f"{act.method} of {act.server}, with {early}"


def space_is_held_first(snapshot: Snapshot) -> Iterator[str]:
    """Nobody is first asked to end unless the space is held.

    Somebody faster would take the space, and the end be in vain.
    """
    for act in snapshot.acts:
        decision = act.decision
        if decision and act.is_first and not act.is_space_held and (
                decision.server and decision.status == "claimed"
                and decision.operation not in _TAKES_NO_SPACE):
            yield (f"{act.method} of {act.server} for decision "
                   f"{decision.uuid}, whose stand-in holds nothing")


def ends_are_needed(snapshot: Snapshot) -> Iterator[str]:
    """Nobody is first asked to end for a server that is gone.

    The end would be in vain.
    """
    for act in snapshot.acts:
        if act.decision and act.is_first and not act.is_wanted:
            yield (f"{act.method} of {act.server} for {act.decision.server}, "
                   "which is gone")


def locks_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """Nobody is first asked to end under a lock that counts.

    A lock protects a server.
    """
    for act in snapshot.acts:
        if act.is_first and act.locked_by:
            yield (f"{act.method} of {act.server}, locked by the "
                   f"{act.locked_by}")


def minimum_runtimes_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """Nobody is first asked to end before its minimum run time.

    It was promised to run for so long.
    """
    for act in snapshot.acts:
        if act.is_first and act.runs_since_us is not None and (
                act.at_us + _SLACK_US
                < act.runs_since_us + act.minimum_runtime_s * SECOND):
            yield (f"{act.method} of {act.server} after "
                   f"{(act.at_us - act.runs_since_us) / SECOND:g} s")


def pauses_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """Nobody is first asked to end while evictions are paused.

    An operator stops everything at once.
    """
    for act in snapshot.acts:
        if act.is_first and act.is_paused:
            yield f"{act.method} of {act.server} during a pause"


#: Hold at every moment.
ALWAYS = (
    allocations_fit, guests_fit, stand_ins_are_open, acts_have_a_decision,
    only_preemptible_end, notices_are_kept, space_is_held_first,
    ends_are_needed, locks_are_kept, minimum_runtimes_are_kept,
    pauses_are_kept)
#: Hold once nothing is under way: no fault, no request, no eviction.
AT_REST = (
    guests_are_allocated, consumers_exist, refused_hold_nothing,
    nothing_is_left_open)
