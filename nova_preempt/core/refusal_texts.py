# SPDX-License-Identifier: Apache-2.0
"""Messages to users when preemption cannot help.

A message describes the user's own request only: no names, numbers or service
errors of other projects. The decision record, which operators see, has the
exact cause.
"""

import enum


class Reason(enum.Enum):
    """Why preemption could not help a request."""

    REQUEST = "request"    # preemption does not support its kind
    NO_HOST = "no_host"    # not even without all candidates
    NOBODY = "nobody"      # there is no preemptible server
    RACES = "races"        # other requests won every claim
    STUCK = "stuck"        # victims did not end in time
    TIME = "time"          # the request timed out before
    BUSY = "busy"          # too many requests wait already
    SERVICE = "service"    # a service failed
    FREE = "free"          # it may use free capacity only


_TEXTS = {
    Reason.NO_HOST: "no host can run the server, even without the preemptible "
                    "servers that may be evicted now.",
    Reason.NOBODY: "there is no preemptible server that may be evicted.",
    Reason.RACES: "other requests claimed the capacity first; try again.",
    Reason.STUCK: "capacity was not freed in time; try again later.",
    Reason.TIME: "too little time was left to free capacity; try again later.",
    Reason.BUSY: "too many requests wait for capacity; try again later.",
    Reason.SERVICE: "a service failed or did not answer; try again later.",
    Reason.FREE: "a preemptible server can only use free capacity.",
}

#: Said when an error prevents the scheduling of a request.
UNSERVED = ("The request could not be scheduled: a service failed or did not "
            "answer; try again later.")


def message(why: Reason, detail: str = "") -> str:
    """Return the sentence for a reason.

    :param detail: for REQUEST: the property of the request that preemption
        does not support
    """
    text = f"{detail}." if why is Reason.REQUEST else _TEXTS[why]
    return f"Preemption could not help: {text}"


def waking_message(boot_s: float, waited_s: float) -> str:
    """Return the message to a request while hosts are powered on.

    :param waited_s: how long the request has waited for them, 0 if it did not
    """
    text = ("Hosts are being powered on for the request, which takes about "
            f"{boot_s:.0f} s")
    if waited_s > 0:
        return f"{text}; it has waited {waited_s:.0f} s. Try again later."
    return f"{text}; try again then."


def join_sentences(*sentences: str) -> str:
    """Join sentences into one text without repeating any."""
    said: list[str] = []
    for sentence in sentences:
        text = sentence.strip()
        if text and not any(text in other for other in said):
            said.append(text)
    return " ".join(said)
