# SPDX-License-Identifier: Apache-2.0
"""Controller of the backlog: starts waiting requests and tracks their boots.

``follow`` updates each request from the state of its servers in Nova: they are
being built, run, were evicted, or found no host. ``step`` is one pass over the
waiting requests: it decides which start, on which hosts, for which requests
hosts are kept free, and the reason that each of the others waits.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import datetime
from typing import TypeAlias

from nova_preempt.core import times
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog import state_from_servers
from nova_preempt.core.backlog.batch_plans import PlannedBoot
from nova_preempt.core.backlog.kept_host_turns import ProjectTurn
from nova_preempt.core.controller_step import Step
from nova_preempt.core.model import SECOND


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Operator options of the backlog.

    :param interval_s: the time from one step to the next
    """

    dispatch: dispatch_values.Options = dispatch_values.Options()  # noqa: RUF009 (frozen)
    boots: boot_outcome.Options = boot_outcome.Options()  # noqa: RUF009
    interval_s: int = 10


@dataclasses.dataclass(frozen=True, slots=True)
class RecordTransition:
    """Record a transition of an open request, and delete servers."""

    request: backlog_model.Request
    verdict: boot_outcome.Transition


@dataclasses.dataclass(frozen=True, slots=True)
class CleanUpRequest:
    """Clean up after a closed request; its trust goes last.

    :ivar is_last: whether only the trust is left after this
    """

    request: backlog_model.Request
    verdict: boot_outcome.Transition
    is_last: bool


@dataclasses.dataclass(frozen=True, slots=True)
class FollowResult:
    """Result of follow(): the transitions of requests.

    :ivar requests: the requests that are still open
    :ivar waiting: the open requests with servers to start
    :ivar coming_back: the uuids of evicted servers that are kept, and that an
        open request brings back
    """

    records: tuple[RecordTransition, ...]
    clears: tuple[CleanUpRequest, ...]
    requests: tuple[backlog_model.Request, ...]
    waiting: tuple[backlog_model.Request, ...]
    coming_back: frozenset[str]


def follow(requests: Collection[backlog_model.Request], closed: Collection[
        backlog_model.Request], seen: Mapping[str,
        request_servers.FoundServers], now_us: int,
        options: boot_outcome.Options) -> FollowResult:
    """Return the transitions of requests, given their servers in Nova.

    :param requests: the open requests
    :param closed: closed requests that may still have something to clean up
    :param seen: {uuid of a request: its servers in Nova}, without requests
        whose servers cannot be read now
    """
    now = _naive(now_us)
    records, followed, cleared = [], [], list(closed)
    for request in requests:
        verdict = boot_outcome.expire(request, now)
        if verdict is None and request.uuid in seen:
            found = seen[request.uuid]
            verdict = state_from_servers.judge(
                request, found.servers, found.victims, now, options)
        after = request
        if verdict is not None:
            if verdict.changes(request) or verdict.deletes:
                records.append(RecordTransition(request, verdict))
            after = boot_outcome.with_verdict(request, verdict)
        if after.state in backlog_model.OPEN:
            followed.append(after)
        elif verdict is not None and not verdict.deletes:
            cleared.append(dataclasses.replace(after, updated_at=now))
    return FollowResult(tuple(records), tuple(CleanUpRequest(request,
        *state_from_servers.closing(request, seen.get(request.uuid,
        request_servers.FoundServers()).servers, now,
        options)) for request in cleared if request.uuid in seen or not (
        request.boots or request.servers)), tuple(followed), tuple(
        request for request in followed if boot_outcome.is_startable(request,
        now)), frozenset(uuid for request in followed
        for uuid in state_from_servers.coming_back(request, now)))


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The backlog at the time of a pass.

    :ivar ranked: the requests with servers to start, in the operator's order;
        empty while the backlog is paused
    :ivar requests: all open requests
    :ivar cloud: None: Nova or Placement cannot tell the capacity of hosts
    """

    options: Options
    ranked: Sequence[backlog_model.Request]
    requests: Sequence[backlog_model.Request]
    cloud: dispatch_values.Cloud | None


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State that one step keeps for the next.

    :ivar turns: the last turn of each project
    :ivar unseen: the uuids of requests that the last pass did not reach
    """

    turns: Mapping[str, ProjectTurn] = dataclasses.field(default_factory=dict)
    unseen: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class RecordWaitReason:
    """Record the reason that a request waits."""

    request: backlog_model.Request
    note: dispatch_values.WaitNote


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """Ask Nova for servers."""

    request: backlog_model.Request
    start: PlannedBoot


@dataclasses.dataclass(frozen=True, slots=True)
class FetchUserQuota:
    """Ask Nova for the quota of the user of a request, for the next pass."""

    request: backlog_model.Request


@dataclasses.dataclass(frozen=True, slots=True)
class LogException:
    """Log the exception that was raised while a request was evaluated."""

    request: backlog_model.Request
    exception: Exception


Intent: TypeAlias = RecordWaitReason | Launch | FetchUserQuota | LogException


def step(
    observed: Observed, memory: Memory, now_us: int) -> Step[Intent, Memory]:
    """Return which requests start, and the reasons that the others wait."""
    now, ranked = _naive(now_us), observed.ranked
    by_uuid = {request.uuid: request for request in ranked}
    intents: list[Intent] = []
    if observed.cloud is None:
        intents += _notes(ranked, dispatch.unknown_capacity(ranked, now))
    elif ranked:
        decided = dispatch.decide(ranked, observed.cloud, now,
            observed.options.dispatch, request_servers.unallocated(
            observed.requests, {
            uuid: room.host for room in observed.cloud.rooms
            for uuid in room.consumers}, observed.cloud.chosen), memory.unseen,
            memory.turns)
        memory = Memory(decided.turns, decided.unseen)
        intents = [
            *(LogException(by_uuid[uuid], exc)
              for uuid, exc in decided.faults.items()),
            *_notes(ranked, {**decided.notes, **decided.chosen}),
            *(Launch(by_uuid[start.uuid], start) for start in decided.starts),
            *(FetchUserQuota(by_uuid[uuid]) for uuid in decided.quotas)]
    return Step(tuple(intents), memory,
                now_us + observed.options.interval_s * SECOND)


def _notes(
    waiting: Collection[backlog_model.Request],
    notes: Mapping[str, dispatch_values.WaitNote]) -> list[RecordWaitReason]:
    """Return the notes that differ from the recorded ones."""
    return [
        RecordWaitReason(request, note) for request in waiting
        if (note := notes.get(request.uuid)) is not None
        and (request.position, request.waits_for, request.estimate_s) != (
            note.position, note.waits_for, note.estimate_s)]


def _naive(now_us: int) -> datetime.datetime:
    return times.at(now_us).replace(tzinfo=None)
