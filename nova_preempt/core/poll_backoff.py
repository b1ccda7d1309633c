# SPDX-License-Identifier: Apache-2.0
"""Intervals between polls, and when to give up.

Who looks after many things at once has a rule of its own: of victims in
``ending.py``, of those that come back, over hours, in ``returns.py``.
"""

from __future__ import annotations

import dataclasses
import enum
import math


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """For something that others do; times by any clock, in seconds.

    Whoever waits looks first, and then asks for the pause: so there is a look
    once time is up, too, and what has come at the last moment is not lost.

    :param began: when it began
    :param longest_s: how long it lasts at most
    :param interval_s: how long it is from one look to the next
    """

    began: float
    longest_s: float
    interval_s: float

    def pause_s(self, now: float, left_s: float = math.inf) -> float:
        """Return how long it is until the next look; 0 = give up.

        :param left_s: for how long who waits is waited for
        """
        rest_s = min(self.began + self.longest_s - now, left_s)
        return max(0.0, min(self.interval_s, rest_s))

    def is_over(self, now: float) -> bool:
        return not self.pause_s(now)


#: No more than this share of a processor is spent on reading, so that those
#: who wait do not hold up others; but it is looked this often in any case.
_SHARE = 0.1
_LONGEST_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class LastPoll:
    """The last look of many who wait for things of one kind.

    :param at: by any clock, in seconds
    :param took_s: that it has kept a processor busy
    """

    at: float
    took_s: float

    def is_due(self, now: float, max_age_s: float) -> bool:
        """Whether it is looked anew: the longer that takes, the later.

        :param max_age_s: how old what was seen may be
        """
        age_s = max(self.took_s / _SHARE, max_age_s)
        return now - self.at >= min(age_s, _LONGEST_S)


class Failure(enum.Enum):
    """How an attempt to serve a request has failed."""

    NO_HOST = "no host"  # there is none, or others were faster there
    STUCK = "stuck"  # who had to give way did not in time
    LOST = "lost"  # another process has taken its victims over
    OTHER = "other"


def should_retry(
    failure: Failure, *, conflicts: int, attempts_left: int, left_s: float,
    outdated: bool = False, ) -> bool:
    """Whether a request is decided anew.

    That is so after a race, which may end otherwise the next time, after the
    claim of a host that did not answer, which is left out the next time, and
    where hosts have more room than what was known. All else would fail again.

    :param conflicts: how many claims failed in one of these ways
    :param left_s: until the request has to be answered
    :param outdated: whether what was known of hosts was too little
    """
    may_differ = (
        conflicts > 0 or outdated if failure is Failure.NO_HOST
        else failure is not Failure.OTHER)
    return may_differ and attempts_left > 0 and left_s > 0


#: of the whole time, at most: for the answer's way, for the ends of victims
#: after their notice, and for choosing before it
ANSWER_SHARE = 0.1
END_SHARE = 0.25
CHOICE_SHARE = 0.05
#: choosing takes seconds at most, however long the whole is
CHOICE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class TimeBudget:
    """What a request has, in seconds.

    ``whole_s``: from when it came to when it must be answered. ``end_s``:
    what has to be left of it when the notice of its victims is over.
    """

    whole_s: float
    end_s: float

    @property
    def notice_limit_s(self) -> int:
        """The longest notice that a request can wait for."""
        choice_s = min(CHOICE_S, self.whole_s * CHOICE_SHARE)
        return max(0, int(self.whole_s - self.end_s - choice_s))


def make_time_budget(
    patience_s: float, sign_s: float, termination_timeout_s: float
) -> TimeBudget:
    """Return the times of a request.

    :param patience_s: how long who asks waits for the answer
    :param sign_s: how long without a sign that the request is worked on; so
        it was in a queue for no longer than this, or it has been given up
    :param termination_timeout_s: how long victims may take to end after
        their notice. Where that is most of the time that there is, the end
        is expected to be faster.
    """
    whole_s = max(0.0, patience_s - min(sign_s, patience_s * ANSWER_SHARE))
    return TimeBudget(whole_s, min(termination_timeout_s, whole_s * END_SHARE))
