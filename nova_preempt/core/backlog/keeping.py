# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""For which waiting requests hosts are kept free, how many, and how long.

A large request would wait for ever behind small ones, each of which takes
what becomes free. So hosts are kept for it (a reserved start, as in EASY
backfilling: Lifka, JSSPP 1995), within bounds, so that the rest goes on:

1. A request may have hosts kept when it has waited for ``hold_after_s``, and
   its servers would fit if hosts were empty. It may not while its project's
   quota is used up, nor if Nova's last answer to it was another one than that
   there is no host.
2. Those that have waited longest are chosen, in every order of the backlog,
   those of projects whose turn it is (4) first: ``most_holds`` requests, and
   half as many of one project. Requests that Nova found no host for more than
   three times come last: Placement does not know why.
3. Where a request that was chosen finds no room, the hosts that are nearest to
   having room are kept: for all of its servers that have to start together,
   or none. For all requests at most a quarter of the hosts in use is kept, for
   those of one project half of that. A request that needs more is not chosen.
   Quarters and halves are rounded up. Hosts of a reservation that the request
   names do not count, as nobody else may have them.
4. Projects have turns: hosts are kept for requests of a project for six hours,
   counted from the first one, and then for none of them for two hours.
5. At first hosts are kept from requests that rank behind. When they have been
   kept for a request for ``hold_after_s``, it comes before all others, in
   every order, as long as it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
import datetime
from typing import Any, Protocol

from nova_preempt.core.backlog import answers
from nova_preempt.core.backlog import model

#: One in so many hosts in use may be kept for all requests together.
HOSTS_PER_KEPT = 4
#: One in so many of those, and of ``most_holds``, for one project.
KEPT_PER_PROJECT = 2
#: For so long hosts are kept in a turn of a project, in seconds. Most servers
#: that end within a day end within hours.
TURN_S = 6 * 3600
#: For so long after that none are kept for it, in seconds.
REST_S = 2 * 3600

#: After more tries for which Nova found no host, where Placement has room, a
#: request comes after others.
MOST_TRIES = 3

#: Under these names waits_for tells the next pass when the turn of the project
#: began, how many hosts are kept and since when, and Nova's last answer.
KEPT = "kept"
REFUSED = "refused"

_RESTS = "those of other projects have their turn until {}Z."
_TOO_MANY = "it needs more than may be kept for one project."


class Options(Protocol):
    """The part of passing.Options that is used here."""

    @property
    def hold_after_s(self) -> int: ...

    @property
    def most_holds(self) -> int: ...


class Trial(Protocol):
    """What a request would get if it were chosen."""

    def own(self, request: model.Request) -> int | None:
        """Return how many hosts the reservation has that it names, if any."""

    def hold(self, request: model.Request, most: int) -> int:
        """Return how many hosts would be kept, beside those before; 0: none.

        :param most: no more than so many
        """

    def could(self, request: model.Request, most: int) -> bool:
        """Tell whether hold() is worth trying."""

    def is_too_many(self, request: model.Request, most: int) -> bool:
        """Tell whether it needs more than so many hosts."""


class Keeping:
    """Chooses in a pass for which requests hosts are kept.

    :param requests: all that wait
    :param hosts: how many are in use
    :param now: naive, in UTC
    :param trial: tells whether hosts can be kept for a request
    :param why_not: returns why a request could not start, whatever room there
        is; '' if nobody knows a reason. Asked of requests that would be
        chosen: the answer may take long
    :param is_over: tells whether the time of the pass is over; then no more
        requests are chosen
    """

    def __init__(
        self,
        requests: Collection[model.Request],
        hosts: int,
        now: datetime.datetime,
        options: Options,
        trial: Trial,
        why_not: Callable[[model.Request], str] = lambda _: "",
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._now = now
        self._options = options
        self._most = _part(hosts, HOSTS_PER_KEPT)
        # When the turns of projects began.
        self._turns: dict[str, datetime.datetime] = {}
        for request in requests:
            since = _since(request, now)
            if since is not None:
                self._turns[request.project_id] = min(
                    since, self._turns.get(request.project_id, since))
        # By uuid: how many hosts may be kept for those that are chosen, and
        # why none are for others that have waited for as long.
        self._chosen: dict[str, int] = {}
        self._granted: dict[str, list[int]] = {}
        self._reasons: dict[str, str] = {}
        self._choose(requests, trial, why_not, is_over)
        self._kept: dict[str, int] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """The uuids of the requests for which hosts are kept."""
        return tuple(self._kept)

    def ranked(
        self, requests: Sequence[model.Request], unseen: Collection[str] = ()
    ) -> list[model.Request]:
        """Return requests in the order in which they are looked at.

        :param requests: as the operator's order has them
        :param unseen: the uuids of those that the last pass did not get to
        """
        return sorted(requests, key=lambda request: (
            not self._is_first(request), request.uuid not in unseen))

    def most(self, request: model.Request) -> int:
        """Return how many hosts may be kept for a request."""
        return self._chosen.get(request.uuid, 0)

    def why_none(self, request: model.Request) -> str:
        """Return why none are, '' if it has not waited for long enough."""
        return self._reasons.get(request.uuid, "")

    def keep(self, request: model.Request, hosts: int) -> None:
        """Note that hosts are kept for a request."""
        self._kept[request.uuid] = hosts
        self._turns.setdefault(request.project_id, self._now)

    def remembered(self, request: model.Request) -> dict[str, Any]:
        """Return what the next pass has to know, as waits_for has it."""
        found: dict[str, Any] = {}
        since = self._turns.get(request.project_id)
        if since is not None:
            found[KEPT] = {"since": since.isoformat(),
                           "hosts": self._kept.get(request.uuid, 0)}
            held = _held_since(request)
            if request.uuid in self._kept:
                held = held or self._now
            elif request.next_try_at is None or (
                request.next_try_at <= self._now
            ):
                held = None  # it pauses for no refusal
            if held is not None:
                found[KEPT]["held_since"] = held.isoformat()
        refused = answers.refused(request)
        if refused:
            found[REFUSED] = refused
        return found

    def _choose(
        self,
        requests: Collection[model.Request],
        trial: Trial,
        why_not: Callable[[model.Request], str],
        is_over: Callable[[], bool],
    ) -> None:
        for request in sorted(
            filter(self._has_waited, requests),
            key=lambda item: (
                self._turns.get(item.project_id, self._now),
                item.tries > MOST_TRIES, _begun(item), item.serial,
                item.uuid),
        ):
            if len(self._chosen) >= self._options.most_holds or is_over():
                return
            project, own = request.project_id, trial.own(request)
            most = self._left(project, own)
            if not most:
                continue
            reason = self._why_rests(project)
            if not reason and trial.could(request, most):
                reason = why_not(request)
            hosts = 0 if reason else trial.hold(request, most)
            if hosts:
                self._chosen[request.uuid] = hosts
                self._granted.setdefault(project, []).append(
                    hosts if own is None else 0)
            elif not reason and own is None and trial.is_too_many(
                request, _part(self._most, KEPT_PER_PROJECT)
            ):
                reason = _TOO_MANY
            if reason:
                self._reasons[request.uuid] = (
                    f" No hosts are kept free for it: {reason}")

    def _left(self, project: str, own: int | None) -> int:
        """Return how many hosts may be kept for one more of a project."""
        granted = self._granted.get(project, ())
        if len(granted) >= _part(self._options.most_holds, KEPT_PER_PROJECT):
            return 0
        if own is not None:
            return own
        return min(
            self._most - sum(map(sum, self._granted.values())),
            _part(self._most, KEPT_PER_PROJECT) - sum(granted))

    def _why_rests(self, project: str) -> str:
        since = self._turns.get(project)
        if since is None or _age_s(since, self._now) < TURN_S:
            return ""
        return _RESTS.format(
            since + datetime.timedelta(seconds=TURN_S + REST_S))

    def _is_first(self, request: model.Request) -> bool:
        held = _held_since(request)
        return (
            held is not None
            and request.uuid in self._chosen
            and _age_s(held, self._now) >= self._options.hold_after_s
        )

    def _has_waited(self, request: model.Request) -> bool:
        return self._waited_s(
            request) >= self._options.hold_after_s and answers.refused(
                request) in ("", answers.NO_HOST)

    def _waited_s(self, request: model.Request) -> float:
        return _age_s(_begun(request), self._now)


def remembered(request: model.Request) -> dict[str, Any]:
    """Return the same where no pass can be made: as it was."""
    found = {name: request.waits_for[name] for name in (KEPT, REFUSED)
             if name in request.waits_for}
    refused = answers.refused(request)
    return {**found, **({REFUSED: refused} if refused else {})}


def _begun(request: model.Request) -> datetime.datetime:
    return request.waits_since or request.created_at


def _since(
    request: model.Request, now: datetime.datetime
) -> datetime.datetime | None:
    """Return when the turn of its project began, None once it has rested."""
    kept: Mapping[str, Any] | None = request.waits_for.get(KEPT)
    if kept is None:
        return None
    since = datetime.datetime.fromisoformat(kept["since"])
    return since if _age_s(since, now) < TURN_S + REST_S else None


def _held_since(request: model.Request) -> datetime.datetime | None:
    """Return since when hosts are kept for a request, None if they are not."""
    at = request.waits_for.get(KEPT, {}).get("held_since")
    return None if at is None else datetime.datetime.fromisoformat(at)


def _age_s(at: datetime.datetime, now: datetime.datetime) -> float:
    return (now - at).total_seconds()


def _part(number: int, of: int) -> int:
    """Return one in so many, rounded up."""
    return -(-number // of)
