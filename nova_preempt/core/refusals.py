# SPDX-License-Identifier: Apache-2.0
"""Messages to users when preemption cannot help.

The words tell of the user's own request, and nothing of others: no names, no
numbers, no errors of services. What exactly stood in the way is in the record
that operators see.
"""

from __future__ import annotations

import enum


class Reason(enum.Enum):
    """Why preemption could not help a request."""

    REQUEST = "request"    # it is of a kind that preemption does not serve
    NO_HOST = "no_host"    # whoever would end
    NOBODY = "nobody"      # there is no preemptible server at all
    RACES = "races"        # others were faster, each time
    STUCK = "stuck"        # who had to give way did not in time
    TIME = "time"          # who asked gives up before it could be done
    BUSY = "busy"          # too many wait already
    SERVICE = "service"    # a service did not do what it should
    FREE = "free"          # it takes free space only


_TEXTS = {
    Reason.NO_HOST: "no host can take the server, not even without the "
                    "preemptible servers that may end now.",
    Reason.NOBODY: "there is no preemptible server that could end.",
    Reason.RACES: "other requests were faster; try again.",
    Reason.STUCK: "capacity was not freed in time; try again later.",
    Reason.TIME: "too little time was left to free capacity; try again later.",
    Reason.BUSY: "too many requests wait for capacity; try again later.",
    Reason.SERVICE: "a service that it needs did not answer as it should; try "
                    "again later.",
    Reason.FREE: "a preemptible server uses free capacity only.",
}

#: Of a request that an error keeps from being looked at.
UNSERVED = ("The request could not be scheduled: a service that it needs did "
            "not answer as it should; try again later.")


def message(why: Reason, detail: str = "") -> str:
    """Return a sentence.

    :param detail: of a REQUEST: what about it cannot be served
    """
    text = f"{detail}." if why is Reason.REQUEST else _TEXTS[why]
    return f"Preemption could not help: {text}"


def waking_message(boot_s: float, waited_s: float) -> str:
    """Return what is said where hosts are being powered on.

    :param waited_s: how long the request has waited for them; 0 = not at all
    """
    text = ("Capacity is on its way: hosts are being powered on, which takes "
            f"about {boot_s:.0f} s")
    if waited_s > 0:
        return f"{text}; it has waited {waited_s:.0f} s. Try again later."
    return f"{text}; try again then."


def join_sentences(*sentences: str) -> str:
    """Return one reason of these; none is said twice."""
    said: list[str] = []
    for sentence in sentences:
        text = sentence.strip()
        if text and not any(text in other for other in said):
            said.append(text)
    return " ".join(said)
