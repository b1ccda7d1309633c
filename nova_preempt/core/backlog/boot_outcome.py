# SPDX-License-Identifier: Apache-2.0

"""State transitions of a request by Nova's answer to its boot."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime
import enum
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.eviction import return_controller

#: The longest pause between two tries, in seconds, since capacity may appear
#: at any time.
LONGEST_PAUSE_S = 600

# Reasons to wait after a try; see dispatch.py for those of a pass.
NO_HOST = "no_valid_host"
NO_ANSWER = "no_answer"
QUOTA = "quota"
REFUSED = "refused"  # for now
CODES = (NO_HOST, NO_ANSWER, QUOTA, REFUSED)

#: So many conflicts are retried before the boot counts as refused.
_MOST_CONFLICTS = 5
#: The longest build of a server: longer than large images take.
BUILDING_S = 3600
#: The pause after the first try that found no host: about as long as an
#: eviction takes.
RETRY_S = 30

NOT_WAITING: Mapping[str, Any] = {
    "position": None, "estimate_s": None, "waits_for": {}}


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Operator options of boots.

    :param undecided_s: after so long a boot without an answer has arrived at
        Nova, or never will
    :param building_s: so long a server may take to be built; 0: any time
    :param retry_s: the pause after the first try that found no host
    """

    undecided_s: float = 180
    building_s: int = BUILDING_S
    retry_s: int = RETRY_S


@dataclasses.dataclass(frozen=True, slots=True)
class Transition:
    """A state transition of a request, and the servers to delete for it.

    :param state: its new state
    :param values: other changed values, by the names of backlog_model.Request
    :param servers: servers that are new or changed
    :param forgotten: the uuids of servers to remove from the request
    :param boots: boots that changed
    :param deletes: the uuids of servers to delete
    :param locked: the uuids of servers that are not deleted as they are locked
    """

    state: str
    values: Mapping[str, Any]
    servers: tuple[backlog_model.OwnServer, ...] = ()
    forgotten: tuple[str, ...] = ()
    boots: tuple[backlog_model.SentBoot, ...] = ()
    deletes: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()

    def changes(self, request: backlog_model.Request) -> bool:
        """Tell whether there is anything to record."""
        return bool(self.servers or self.forgotten or self.boots) or any(
            getattr(request, name) != value
            for name, value in (*self.values.items(), ("state", self.state)))


def with_verdict(request: backlog_model.Request,
          verdict: Transition) -> backlog_model.Request:
    """Return the request after a verdict."""
    servers = {
        item.uuid: item
        for item in (*request.servers, *verdict.servers)
        if item.uuid not in verdict.forgotten}
    boots = {item.number: item for item in (*request.boots, *verdict.boots)}
    return dataclasses.replace(
        request, state=verdict.state, **verdict.values,
        servers=tuple(servers.values()),
        boots=tuple(boots[number] for number in sorted(boots)), )


class BootAnswer(enum.Enum):
    """Kinds of answers of Nova to a boot."""

    ACCEPTED = "accepted"
    QUOTA = "quota"  # more than the user may have now
    LATER = "later"
    NO = "no"
    UNKNOWN = "unknown"  # it may have made the servers


def classify_answer(status: int | None, kind: str, text: str,
        tries: int = 0) -> BootAnswer:
    """Return the kind of Nova's answer to a boot.

    :param status: of HTTP, None if there was no answer
    :param kind: the name of Nova's error, '' if the answer is not Nova's
    :param text: Nova's message
    :param tries: how often the boot was tried before
    """
    if status is None or status >= 500 or status < 200:
        return BootAnswer.UNKNOWN
    if status < 300:
        return BootAnswer.ACCEPTED
    words = text.lower()
    if status in (403, 413) and any(
        item in words for item in ("quota", "over limit", "maximum number of")
    ):
        return BootAnswer.QUOTA
    if status == 409:
        return BootAnswer.LATER if tries < _MOST_CONFLICTS else BootAnswer.NO
    # A proxy in front of Nova may refuse for any reason, temporarily.
    return BootAnswer.NO if status in (400, 403,
        404) and kind else BootAnswer.LATER


def with_boot(request: backlog_model.Request, boot: backlog_model.SentBoot,
        forgotten: Sequence[int] = ()) -> backlog_model.Request:
    """Return the request while Nova is asked for a boot.

    :param forgotten: the numbers of boots to remove from the request
    """
    return dataclasses.replace(
        request, state=backlog_model.PLACING, reason="",
        updated_at=boot.asked_at,
        boots=(*(item for item in request.boots
                 if item.number not in forgotten), boot))


def judge_answer(request: backlog_model.Request, boot: backlog_model.SentBoot,
        how: BootAnswer, text: str, server_uuid: str, now: datetime.datetime,
        options: Options) -> Transition:
    """Return the transition of a request by Nova's answer to its boot.

    An unknown answer changes nothing: the tracker finds out later.

    :param request: as it was before the boot
    :param text: Nova's message, if it has not accepted
    :param server_uuid: of the first server, if it has; '' if unknown
    """
    if how is BootAnswer.UNKNOWN:
        return Transition(backlog_model.PLACING, {})
    if how is BootAnswer.ACCEPTED:
        first = backlog_model.OwnServer(
            server_uuid, boot.number, backlog_model.BUILDING, now)
        return Transition(
            backlog_model.PLACING, {}, (first,) if server_uuid else (),
            boots=(dataclasses.replace(boot, state=backlog_model.ASKED),))
    refused = (dataclasses.replace(boot, state=backlog_model.REFUSED),)
    if how is BootAnswer.NO:
        return dataclasses.replace(
            refuse(request, text, now, options), boots=refused)
    code = QUOTA if how is BootAnswer.QUOTA else REFUSED
    values = retry_values(request, code, text, now, options)
    return Transition(request.state, values, boots=refused)


def without_flavor(
    request: backlog_model.Request, boot: backlog_model.SentBoot
) -> Transition | None:
    """Remove a deleted flavor from the alternatives of a request.

    :returns: None if the request has no other flavor
    """
    left = tuple(item for item in request.alternatives
                 if item.flavor_id != boot.flavor_id)
    if not left:
        return None
    return Transition(
        request.state, {"alternatives": left},
        boots=(dataclasses.replace(boot, state=backlog_model.REFUSED),))


def refuse(
    request: backlog_model.Request, text: str, now: datetime.datetime,
    options: Options, ) -> Transition:
    """Return the transition of a request whose servers cannot be started.

    A request of which a part runs stays partly active.
    """
    if any(item.state == backlog_model.RUNNING for item in request.servers):
        values = retry_values(request, REFUSED, text, now, options)
        return Transition(request.state, {**values, "reason": text})
    return Transition(backlog_model.FAILED, {"reason": text, **NOT_WAITING})


def why_too_late(request: backlog_model.Request,
                 now: datetime.datetime) -> str:
    """Return why a request may no longer start for the first time, or ''."""
    if request.not_after is not None and now >= request.not_after:
        return f"It was not started before {request.not_after}Z, not_after."
    if request.longest_wait_s is not None and (
        now - request.created_at
    ) >= datetime.timedelta(seconds=request.longest_wait_s):
        return f"It has waited for {request.longest_wait_s} s, longest_wait_s."
    return ""


def is_startable(request: backlog_model.Request,
                 now: datetime.datetime) -> bool:
    """Tell whether servers of a request start once there is capacity."""
    if request.state == backlog_model.WAITING:
        return True
    states = [item.state for item in request.servers]
    if not backlog_model.missing(request) or (
        request.state not
        in (backlog_model.PARTLY_ACTIVE, backlog_model.EVICTED)
        or (request.state == backlog_model.EVICTED
            and backlog_model.AWAY in states)):
        return False
    # A victim comes back at any time.
    return backlog_model.ENDED in states or not why_too_late(request, now)


def expire(request: backlog_model.Request,
           now: datetime.datetime) -> Transition | None:
    """Return the verdict that a request has expired, None if it has not."""
    reason = why_too_late(request, now)
    if request.state != backlog_model.WAITING or not reason:
        return None
    return Transition(backlog_model.EXPIRED, {"reason": reason, **NOT_WAITING})


def retry_values(request: backlog_model.Request, code: str, text: str,
        now: datetime.datetime, options: Options) -> dict[str, Any]:
    """Return the values of a request to retry after a failed try."""
    kept = request.waits_for.get("kept")
    return {
        "waits_for": {"code": code, "text": text,
                      **({"kept": kept} if kept else {})},
        "tries": request.tries + 1,
        "next_try_at": now + datetime.timedelta(seconds=min(
            LONGEST_PAUSE_S,
            return_controller.pause_s(options.retry_s, request.tries))),
    }


def refused(request: backlog_model.Request) -> str:
    """Return the code of Nova's last refusal, '' if there was none."""
    if not request.tries:
        return ""
    code: str = request.waits_for.get("code", "")
    if code in CODES:
        return code
    found: str = request.waits_for.get("refused", "")
    return found
