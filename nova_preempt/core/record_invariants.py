# SPDX-License-Identifier: Apache-2.0

"""Invariants of records and of the engine."""

from collections import Counter
from collections.abc import Iterable, Iterator

from nova_preempt.core import eviction_status
from nova_preempt.core.invariant_snapshot import Server
from nova_preempt.core.invariant_snapshot import Snapshot

#: Statuses of a victim for which there is still something to do.
_UNFINISHED = *eviction_status.UNTOUCHED, eviction_status.ENDING

#: States of a server in which Nova changes its metadata.
_WITH_METADATA = "active", "paused", "suspended", "stopped"


def _repeated(items: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield each item that is there several times, and how often."""
    return ((item, number) for item, number in sorted(Counter(items).items())
            if number > 1)


def victims_end_once(snapshot: Snapshot) -> Iterator[str]:
    """No server is a victim of two open decisions.

    Otherwise two requests would get its capacity.
    """
    for uuid, number in _repeated(
            victim.server for each in snapshot.open_decisions()
            for victim in each.victims if victim.status in _UNFINISHED):
        yield f"{uuid} is a victim of {number} open decisions"


def done_is_done(snapshot: Snapshot) -> Iterator[str]:
    """No decision is done before all of its victims are.

    Otherwise the record would be wrong.
    """
    for each in snapshot.decisions:
        if each.status == "done":
            for victim in each.victims:
                if victim.status in _UNFINISHED:
                    yield (f"decision {each.uuid} is done, and victim "
                           f"{victim.server} is {victim.status}")


def victims_are_as_recorded(snapshot: Snapshot) -> Iterator[str]:
    """The state of a victim matches its record.

    Its owner reads the outcome in the record.
    """
    latest = {victim.server: (victim, each) for each in snapshot.decisions
              for victim in each.victims}
    for uuid, (victim, each) in latest.items():
        server = snapshot.servers.get(uuid)
        if victim.status == eviction_status.GONE and (
                server and not server.is_deleted):
            yield (f"victim {uuid} of {each.uuid} is recorded as gone, and "
                   "lives")
        if each.status in ("done", "rolled_back") and (
                victim.status in _UNFINISHED
                and not (server and server.notice)):
            yield (f"victim {uuid} is recorded as {victim.status}, and "
                   f"decision {each.uuid} is {each.status}")


def _running_on(snapshot: Snapshot) -> list[Server]:
    """Return the servers that no decision ends, or has stopped."""
    ending = {victim.server for each in snapshot.decisions
              for victim in each.victims
              if victim.status == eviction_status.STOPPED or each.is_open}
    return [server for server in snapshot.servers.values()
            if server.uuid not in ending and not server.is_deleted]


def notices_are_withdrawn(snapshot: Snapshot) -> Iterator[str]:
    """No running server has a notice without an open decision.

    Otherwise its owner would expect an eviction.
    """
    for server in _running_on(snapshot):
        if server.notice and server.guest_on and (
                server.vm_state in _WITH_METADATA):
            yield f"{server.uuid} still has notice of {server.notice}"


def our_locks_are_removed(snapshot: Snapshot) -> Iterator[str]:
    """Only stopped victims have our lock.

    The owner of another server could not use it.
    """
    for server in _running_on(snapshot):
        if server.is_locked_by_us:
            yield f"{server.uuid} is {server.vm_state} and locked by us"


def kept_run_again(snapshot: Snapshot) -> Iterator[str]:
    """A kept victim that a decision stopped is started again.

    Its eviction was cancelled.
    """
    for server in _running_on(snapshot):
        if server.is_stopped_by_us:
            yield f"{server.uuid} was kept, and is still stopped"


def one_decision_a_server(snapshot: Snapshot) -> Iterator[str]:
    """At most one open decision holds capacity for a server.

    Otherwise it would get two hosts.
    """
    for uuid, number in _repeated(
            each.server for each in snapshot.open_decisions() if each.server
            and each.status == "claimed" and each.has_owner):
        yield f"{number} claimed decisions are for server {uuid}"


def limits_are_kept(snapshot: Snapshot) -> Iterator[str]:
    """Quotas, budgets and limits are not exceeded.

    They bound the effect of a project on other projects.
    """
    for limit in snapshot.limits:
        if limit.used > limit.most:
            yield f"{limit.name}: {limit.used} of {limit.most}"


def one_engine_acts(snapshot: Snapshot) -> Iterator[str]:
    """At most one engine is the leader.

    Otherwise two engines would repeat all actions.
    """
    if len(snapshot.leaders) > 1:
        yield ", ".join(sorted(snapshot.leaders)) + " act together"


#: Hold at every moment.
ALWAYS = (
    victims_end_once, done_is_done, one_decision_a_server, limits_are_kept,
    one_engine_acts)
#: Hold once nothing is under way: no fault, no request, no eviction.
AT_REST = (
    victims_are_as_recorded, notices_are_withdrawn, our_locks_are_removed,
    kept_run_again)
