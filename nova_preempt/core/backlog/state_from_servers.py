# SPDX-License-Identifier: Apache-2.0

"""State transitions of a request by the states of its servers."""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog.boot_outcome import Options
from nova_preempt.core.backlog.boot_outcome import Transition
from nova_preempt.core.observed_server import ObservedServer


def judge(
    request: backlog_model.Request, seen: Iterable[ObservedServer],
    victims: Mapping[str, str], now: datetime.datetime, options: Options,
) -> Transition:
    """Return the transition of an open request.

    1. Each server has the state that is seen, see server_state(). 2. A boot
    without an answer was accepted if its servers exist; it is lost if they do
    not appear in time. It is settled once none is in build. 3. Servers for
    which Nova found no host, or too late, are deleted and do not count; nor do
    servers of boots that were given up. 4. Victims that were deleted are
    missing if the request comes back; servers that their owner deleted are
    not. 5. The state follows, see request_servers.status().

    :param seen: the servers of this request in Nova
    :param victims: {uuid: status} of its victims
    """
    there = {item.uuid: item for item in seen}
    one = _Judgement(request, there, victims, now, options)
    one.look_at_servers()
    one.look_at_boots()
    return one.verdict()


def coming_back(request: backlog_model.Request,
                now: datetime.datetime) -> list[str]:
    """Return the uuids of kept victims that the request brings back.

    The return action of their flavors is for servers of no request.
    """
    if not request.comes_back or (
        request.back_until is not None and now >= request.back_until):
        return []
    return [item.uuid for item in request.servers
            if item.state == backlog_model.AWAY]


def closing(
    request: backlog_model.Request, seen: Iterable[ObservedServer],
    now: datetime.datetime, options: Options, ) -> tuple[Transition, bool]:
    """Return the cleanup of a closed request.

    Servers in build are deleted. Running servers stay, unless the request was
    cancelled together with its servers.

    :returns: (Transition, whether nothing more may appear)
    """
    there = {item.uuid: item for item in seen}
    one = _Judgement(request, there, {}, now, options)
    one.look_at_servers(stop=True)
    one.look_at_boots()
    if request.ends_servers:
        one.end_all()
    verdict = one.verdict(request.state)
    left = there.keys() - verdict.locked
    ended = {boot.number: boot.state for boot in verdict.boots}
    return verdict, not (request.ends_servers and left) and not any(
        ended.get(boot.number, boot.state) in request_servers.OPEN_BOOTS
        for boot in request.boots) and not any(
        item.state == backlog_model.UNPLACED and item.uuid in left
        for item in one.servers.values())


_NO_FAULT = "Nova did not build it and reported no fault."
_TOO_LONG = "Nova did not build it in time."


@dataclasses.dataclass
class _Judgement:
    """Evaluates one request once."""

    _request: backlog_model.Request
    _there: Mapping[str, ObservedServer]
    _victims: Mapping[str, str]
    _now: datetime.datetime
    _options: Options

    def __post_init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._deletes: list[str] = []
        self._locked: list[str] = []
        self._over = ""
        self.servers = {item.uuid: item for item in self._request.servers}
        self._boots = {item.number: item for item in self._request.boots}

    # -- servers ---------------------------------------------------------

    def look_at_servers(self, stop: bool = False) -> None:
        """Set the state of each server.

        :param stop: whether servers in build are to be deleted
        """
        ended = []
        sought = request_servers.sought_servers(self._request)
        for uuid in sorted({*self.servers, *self._there}):
            seen = self._there.get(uuid)
            known = self.servers.get(uuid)
            if seen is None and uuid not in sought:
                continue
            if known is None and seen is not None and self._is_void(seen):
                self._delete(seen)
                continue
            before = known.state if known else None
            state = request_servers.server_state(before, seen,
                                                 self._victims.get(uuid))
            if state == backlog_model.BUILDING and (stop
                                                    or self._is_stuck(seen)):
                state = backlog_model.UNPLACED
            if seen is None and self._was_withdrawn(known):
                state = backlog_model.UNPLACED
            if state == backlog_model.UNPLACED and seen is not None:
                self._delete(seen)
            if state == backlog_model.ENDED != before:
                ended.append(uuid)
            self._set(uuid, state)
        self._end(ended)

    def end_all(self) -> None:
        """Delete all servers that exist."""
        for uuid in sorted(self._there):
            if uuid not in (*self._deletes, *self._locked):
                self._delete(self._there[uuid])

    def _set(self, uuid: str, state: str) -> None:
        known = self.servers.get(uuid)
        if known is None:
            self.servers[uuid] = backlog_model.OwnServer(
                uuid, self._boot(self._there[uuid]), state, self._now)
        elif known.state != state:
            self.servers[uuid] = dataclasses.replace(
                known, state=state, since=self._now)

    def _boot(self, seen: ObservedServer) -> int:
        return request_servers.boot_of(self._request, seen)

    def _is_void(self, seen: ObservedServer) -> bool:
        """Tell whether a server appeared although its boot was given up."""
        boot = self._boots.get(self._boot(seen))
        return boot is None or boot.state in request_servers.VOID_BOOTS

    def _was_withdrawn(self, known: backlog_model.OwnServer | None) -> bool:
        """Tell whether Nova made a server, and then refused its boot.

        Nova creates the servers of a boot one after the other, and deletes
        them if one fails (nova/compute/api.py, _provision_instances); never
        after it has accepted.
        """
        if known is None or known.state != backlog_model.BUILDING:
            return False
        boot = self._boots.get(known.boot)
        return boot is not None and boot.state in (
            backlog_model.ASKING, *request_servers.VOID_BOOTS)

    def _is_stuck(self, seen: ObservedServer | None) -> bool:
        boot = self._boots.get(self._boot(seen)) if seen else None
        most_s = self._options.building_s
        return boot is not None and 0 < most_s < self._age_s(boot)

    def _delete(self, seen: ObservedServer) -> None:
        if not seen.is_deleting:
            # Nova does not let the owner delete it, and the service user
            # must not.
            (self._locked if seen.locked_by else self._deletes).append(
                seen.uuid)

    def _end(self, ended: list[str]) -> None:
        """Queue deleted victims again, or drop them for good."""
        request = self._request
        over = ""
        if not request.comes_back:
            over = "Its servers were evicted, and comes_back is false."
        elif request.back_until is not None and (
            self._now >= request.back_until):
            over = f"It does not wait again after {request.back_until}Z."
            ended = [uuid for uuid, item in self.servers.items()
                     if item.state == backlog_model.ENDED]
        elif request.most_returns is not None and (
            request.returns >= request.most_returns):
            over = f"It has waited again {request.returns} times."
        if not ended:
            return
        if over:
            self._over = over
            for uuid in ended:
                self._set(uuid, backlog_model.GONE)
        else:
            self._values.update(
                returns=request.returns + 1, waits_since=self._now, tries=0,
                next_try_at=None)

    # -- boots -----------------------------------------------------------

    def look_at_boots(self) -> None:
        """Close boots of which no more servers can appear."""
        for boot in self._request.boots:
            if boot.state not in request_servers.OPEN_BOOTS:
                continue
            own = [item.state for item in self.servers.values()
                   if item.boot == boot.number]
            state = self._boot_state(boot, own)
            if state != boot.state:
                self._boots[boot.number] = dataclasses.replace(
                    boot, state=state)
                self._note_try(boot, state, own)

    def _boot_state(self, boot: backlog_model.SentBoot, own: list[str]) -> str:
        is_over = self._age_s(boot) > self._options.undecided_s
        if len(own) < boot.count and not is_over:
            return boot.state
        if boot.state == backlog_model.ASKING and not own:
            return backlog_model.LOST
        if backlog_model.BUILDING in own:
            return backlog_model.ASKED
        if own and set(own) == {backlog_model.UNPLACED}:
            return backlog_model.IN_VAIN
        return backlog_model.SETTLED

    def _note_try(self, boot: backlog_model.SentBoot, state: str,
                  own: list[str]) -> None:
        """Lengthen the pause after a failed try."""
        if state == backlog_model.LOST:
            code, text = boot_outcome.NO_ANSWER, "Nova has not answered."
        elif backlog_model.UNPLACED in own:
            failed = [seen.fault for seen in self._there.values()
                if self._boot(seen) == boot.number and seen.vm_state == "error"
                and request_servers.is_transient(seen.fault)]
            code, text = boot_outcome.NO_HOST, next(
                filter(None, failed), _NO_FAULT if failed else _TOO_LONG)
        else:
            if backlog_model.RUNNING in own:
                self._values.update(tries=0, next_try_at=None)
            return
        self._values.update(boot_outcome.retry_values(
            self._request, code, text, self._now, self._options))

    def _age_s(self, boot: backlog_model.SentBoot) -> float:
        return (self._now - boot.asked_at).total_seconds()

    # -- result ------------------------------------------------------------

    def verdict(self, state: str | None = None) -> Transition:
        """Return the changes.

        :param state: of the request, None: it follows from its servers
        """
        request = self._request
        left = {uuid: item for uuid, item in sorted(self.servers.items())
                if item.state != backlog_model.UNPLACED or uuid in self._there}
        before = {item.uuid: item for item in request.servers}
        after = dataclasses.replace(
            request, servers=tuple(left.values()), boots=tuple(
                self._boots[item.number] for item in request.boots))
        values = dict(self._values)
        if state is None:
            state, reason = request_servers.status(after, self._over,
                                                   self._faults())
            if reason or state != request.state:
                values["reason"] = reason
        if state != backlog_model.PLACING and not boot_outcome.is_startable(
            dataclasses.replace(after, state=state), self._now):
            values.update(boot_outcome.NOT_WAITING)
        return Transition(
            state, values,
            tuple(item for item in after.servers
                  if item != before.get(item.uuid)),
            tuple(sorted(before.keys() - left.keys())),
            tuple(boot for boot in after.boots if boot not in request.boots),
            tuple(self._deletes), tuple(self._locked))

    def _faults(self) -> str:
        return next((
            self._there[uuid].fault
            for uuid, item in sorted(self.servers.items())
            if item.state == backlog_model.ERROR and uuid in self._there
            and self._there[uuid].fault), "Nova could not build its servers.")
