# SPDX-License-Identifier: Apache-2.0
"""Webhooks of projects: what is sent, its signature, and its retries.

Headers, signature and secrets are those of the specification "Standard
Webhooks" 1.0, for which libraries exist in most languages.
"""

import base64
import binascii
from collections.abc import Mapping
import dataclasses
import datetime
import hashlib
import hmac
from typing import Any

#: How often a delivery is tried at most, and for how long. A notice or a
#: recommendation is tried until its end.
MAX_ATTEMPTS = 10
MAX_AGE_S = 3600

# The first and the longest time before a retry.
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 300.0

_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)

# What a project learns of its victim and of its reservation. Notifications are
# for operators: they name servers and users of other projects, and hosts.
_VICTIM = ("flavor", "action", "notice_s", "deadline", "restore")
_RESERVATION = ("reservation_id", "name", "status", "quantity", "start", "end",
                "end_action")


@dataclasses.dataclass(frozen=True)
class Webhook:
    """The webhook of a project. Times are naive and UTC.

    :ivar sealed: its secret, encrypted
    :ivar failures: failed calls since the last success
    :ivar retry_at: when it may be called again
    :ivar last_error: why the last call failed, empty if it succeeded
    :ivar dropped: events that were not delivered
    """

    project_id: str
    url: str
    sealed: str
    user_id: str
    updated_at: datetime.datetime
    retry_at: datetime.datetime
    failures: int = 0
    last_error: str = ""
    delivered_at: datetime.datetime | None = None
    dropped: int = 0


@dataclasses.dataclass(frozen=True)
class Delivery:
    """An event that waits to be sent to the webhook of a project.

    :ivar id: of the event; all attempts have the same
    :ivar body: the JSON that is sent
    :ivar next_at: when it is sent next, unless the webhook has to wait
    :ivar attempts: how often it was sent
    """

    id: str
    project_id: str
    body: str
    expires_at: datetime.datetime
    next_at: datetime.datetime
    attempts: int = 0


def describe(event: str, payload: Mapping[str, Any]
             ) -> tuple[str, dict[str, Any]] | None:
    """Return (project id, what it is told) of a notification.

    :param event: its type, such as "preemption.notice"
    :returns: None if no project is told of it
    """
    victim = payload.get("victim")
    if event.startswith("preemption.") and victim:
        return victim["project_id"], {
            "preemption_id": payload["decision_id"],
            "server_id": victim["uuid"],
            **{name: victim[name] for name in _VICTIM},
            **({"status": payload["status"]} if "status" in payload else {})}
    if event == "preemption.recommendation":
        server = payload["server"]
        return server["project_id"], {
            "server_id": server["uuid"], "flavor": server["flavor"],
            "reason": payload["reason"], "until": payload["until"]}
    if event.startswith("reservation."):
        return payload["project_id"], {
            name: payload[name] for name in _RESERVATION}
    return None


def expiry(event: str, told: Mapping[str, Any], sent_at: datetime.datetime
           ) -> datetime.datetime:
    """Return when an event is of no use to its project any more.

    :param told: what describe() returned
    :param sent_at: when the notification was sent; naive and UTC
    """
    latest = sent_at + datetime.timedelta(seconds=MAX_AGE_S)
    ends = told.get("deadline" if event == "preemption.notice" else "until")
    return min(latest, parse_time(ends)) if ends else latest


def parse_time(text: str) -> datetime.datetime:
    """Return the time of a notification, naive and UTC."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


def retry_after_s(failures: int, spread: float) -> float:
    """Return the seconds to wait after consecutive failures.

    They double with each failure. Up to half of them are left to chance, so
    that receivers that fail together are not called together again.

    :param failures: 1 after the first
    :param spread: random, in [0, 1)
    """
    longest = min(_FIRST_RETRY_S * 2.0 ** min(failures - 1, 20),
                  _LONGEST_RETRY_S)
    return longest * (1 - spread / 2)


def make_secret(key: bytes) -> str:
    """Return the secret, as users see it, of 24 to 64 random bytes."""
    return _PREFIX + base64.b64encode(key).decode()


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret.

    :raises ValueError: it is none; the text does not quote it
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(_PREFIX) or len(key) not in _KEY_BYTES:
        raise ValueError(f"it must be {_PREFIX} and 24 to 64 random bytes as "
                         "base64")
    return key


def headers(secret: str, delivery_id: str, body: bytes, now_s: int
            ) -> dict[str, str]:
    """Return the headers that prove who has sent a body, and when.

    :param now_s: seconds since the epoch
    """
    signed = b"%s.%d.%s" % (delivery_id.encode(), now_s, body)
    signature = hmac.digest(key_of(secret), signed, hashlib.sha256)
    return {"webhook-id": delivery_id, "webhook-timestamp": str(now_s),
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}"}
