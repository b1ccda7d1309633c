# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Controller of the backlog: starts requests, and follows what was started.

A step first judges each request by what Nova has of its servers: they are
built, run, were evicted, or could not be placed. Then it makes a pass over the
requests that wait: which start, on which hosts, for which hosts are kept, and
what the others are told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
import datetime
import traceback
from typing import TypeAlias

from nova_preempt.core import times
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import lifecycle
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import order
from nova_preempt.core.backlog import passes
from nova_preempt.core.backlog import servers
from nova_preempt.core.backlog.planning import Start
from nova_preempt.core.backlog.turns import Turn
from nova_preempt.core.controller import Step
from nova_preempt.core.model import SECOND


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The options of an operator.

    :param interval_s: the time from one step to the next
    """

    dispatch: passes.Options = passes.Options()  # noqa: RUF009 (frozen)
    boots: boot_outcome.Options = boot_outcome.Options()  # noqa: RUF009
    interval_s: int = 10


class CapacityUnknown(Exception):
    """Nova or Placement cannot tell what capacity there is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The backlog at one time.

    :ivar requests: those that are open
    :ivar closed: closed ones of which something may be left to clear up
    :ivar seen: {uuid of a request: what Nova has of its servers}, without
        requests of which that is unknown now
    :ivar cloud: given the requests that wait, returns the cloud as a pass
        sees it; may raise CapacityUnknown. None while the backlog is paused:
        nothing starts
    """

    options: Options
    requests: Sequence[model.Request]
    seen: Mapping[str, servers.Seen]
    cloud: Callable[[Sequence[model.Request]], passes.Cloud] | None = None
    closed: Sequence[model.Request] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """Values that one step keeps for the next.

    :ivar turns: the last turn of each project
    :ivar unseen: the uuids of requests that the last pass did not get to
    :ivar faults: {uuid of a request: what exception it raised, and where}
    :ivar coming_back: the uuids of servers that were evicted, are kept, and
        that open requests have come back
    """

    turns: Mapping[str, Turn] = dataclasses.field(default_factory=dict)
    unseen: frozenset[str] = frozenset()
    faults: Mapping[str, object] = dataclasses.field(default_factory=dict)
    coming_back: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """Write down what has become of an open request, and delete servers."""

    request: model.Request
    verdict: boot_outcome.Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Clear:
    """Clear up after a closed request, its trust last.

    :ivar is_last: whether nothing but the trust is left then
    """

    request: model.Request
    verdict: boot_outcome.Verdict
    is_last: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """Write down what a request waits for."""

    request: model.Request
    note: passes.Note


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """Ask Nova for servers."""

    request: model.Request
    start: Start


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """Report an exception: of a request, of a whole pass where it is None."""

    request: model.Request | None
    fault: Exception


Intent: TypeAlias = Record | Clear | Note | Launch | Report


def step(
    observed: Observed, memory: Memory, now_us: int
) -> Step[Intent, Memory]:
    """Return what becomes of requests, and which start.

    A pass that fails as a whole keeps no request from being followed.
    """
    now = times.at(now_us).replace(tzinfo=None)
    options = observed.options
    intents, followed, closed = _follow(observed, now)
    memory = dataclasses.replace(memory, coming_back=frozenset(
        uuid for request in followed
        for uuid in lifecycle.coming_back(request, now)))
    for request in (*observed.closed, *closed):
        seen = observed.seen.get(request.uuid)
        if seen is None and not (request.boots or request.servers):
            seen = servers.Seen()
        if seen is not None:
            intents.append(Clear(request, *lifecycle.closing(
                request, seen.servers, now, options.boots)))
    waiting = [] if observed.cloud is None else [
        request for request in followed
        if boot_outcome.is_startable(request, now)]
    if waiting and observed.cloud is not None:
        try:
            more, memory = _pass(
                observed.cloud(waiting), followed, waiting, memory, now,
                options.dispatch)
        except CapacityUnknown as exc:
            more = [*_notes(waiting, dispatch.unknown_capacity(waiting, now)),
                    Report(None, exc)]
        except Exception as exc:  # noqa: BLE001 (raised once all is done)
            more = [Report(None, exc)]
        intents += more
    return Step(
        tuple(intents), memory, now_us + options.interval_s * SECOND)


def _follow(
    observed: Observed, now: datetime.datetime
) -> tuple[list[Intent], list[model.Request], list[model.Request]]:
    """Return what has become of open requests.

    :returns: (intents, requests that are still open, those that are closed
        and can be cleared up at once)
    """
    intents: list[Intent] = []
    followed, closed = [], []
    for request in observed.requests:
        verdict = boot_outcome.expire(request, now)
        if verdict is None and request.uuid in observed.seen:
            seen = observed.seen[request.uuid]
            verdict = lifecycle.judge(
                request, seen.servers, seen.victims, now,
                observed.options.boots)
        after = request
        if verdict is not None:
            if verdict.changes(request) or verdict.deletes:
                intents.append(Record(request, verdict))
            after = boot_outcome.after(request, verdict)
        if after.state in model.OPEN:
            followed.append(after)
        elif verdict is not None and not verdict.deletes:
            closed.append(dataclasses.replace(after, updated_at=now))
    return intents, followed, closed


def _pass(
    cloud: passes.Cloud,
    followed: Sequence[model.Request],
    waiting: Sequence[model.Request],
    memory: Memory,
    now: datetime.datetime,
    options: passes.Options,
) -> tuple[list[Intent], Memory]:
    ranked = cloud.order.rank(
        waiting, now, order.shares(followed, cloud.rooms))
    decided = dispatch.decide(
        ranked, cloud, now, options,
        servers.without_room(
            followed, {uuid: room.host for room in cloud.rooms
                       for uuid in room.consumers}, cloud.chosen),
        memory.unseen, memory.turns)
    known = _known_faults(decided, memory.faults)
    by_uuid = {request.uuid: request for request in waiting}
    return [
        *(Report(by_uuid[uuid], exc) for uuid, exc in decided.faults.items()
          if memory.faults.get(uuid) != known[uuid]),
        *_notes(waiting, {**decided.notes, **decided.chosen}),
        *(Launch(by_uuid[start.uuid], start) for start in decided.starts),
    ], dataclasses.replace(
        memory, turns=decided.turns, unseen=decided.unseen, faults=known)


def _notes(
    waiting: Collection[model.Request], notes: Mapping[str, passes.Note]
) -> list[Intent]:
    """Return what is new of these."""
    return [
        Note(request, note) for request in waiting
        if (note := notes.get(request.uuid)) is not None
        and (request.position, request.waits_for, request.estimate_s) != (
            note.position, note.waits_for, note.estimate_s)]


def _known_faults(
    decided: passes.Pass, before: Mapping[str, object]
) -> dict[str, object]:
    """Return the kinds of faults: each is reported once while it lasts.

    The text of an exception may have times or addresses.
    """
    return {
        **{uuid: before[uuid] for uuid in decided.unseen if uuid in before},
        **{uuid: (type(exc), [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(exc.__traceback__)])
           for uuid, exc in decided.faults.items()}}
