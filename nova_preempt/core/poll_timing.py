# SPDX-License-Identifier: Apache-2.0
"""Poll intervals, time budgets and retries of a request.

Controllers that follow many objects have their own intervals:
eviction_controller.py for victims, return_controller.py for shelved victims.
"""

import dataclasses
import enum
import math


@dataclasses.dataclass(frozen=True, slots=True)
class BoundedWait:
    """A bounded wait for another service; times by any clock, in s.

    The caller polls first and then asks for the pause, so that it polls once
    more after the time is up and does not miss a change at the last moment.

    :param began: when the wait began
    :param longest_s: the longest time to wait
    :param interval_s: the time between two polls
    """

    began: float
    longest_s: float
    interval_s: float

    def pause_s(self, now: float, left_s: float = math.inf) -> float:
        """Return the seconds until the next poll; 0 = give up.

        :param left_s: how long the requester itself waits
        """
        rest_s = min(self.began + self.longest_s - now, left_s)
        return max(0.0, min(self.interval_s, rest_s))

    def is_over(self, now: float) -> bool:
        return not self.pause_s(now)


#: The share of a processor that reads may use, so that waiting requests do not
#: slow down others; and the longest time between two reads in any case.
_SHARE = 0.1
_LONGEST_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class SharedRead:
    """The last read for many waiters of one kind.

    :param at: by any clock, in seconds
    :param took_s: processor time that the read took
    """

    at: float
    took_s: float

    def is_due(self, now: float, max_age_s: float) -> bool:
        """Return whether to read anew: the dearer a read, the later.

        :param max_age_s: how old the last read may be
        """
        age_s = max(self.took_s / _SHARE, max_age_s)
        return now - self.at >= min(age_s, _LONGEST_S)


class AttemptFailure(enum.Enum):
    """Why an attempt to serve a request failed."""

    NO_HOST = "no host"  # none fits, or other requests claimed it
    STUCK = "stuck"  # victims did not end in time
    LOST = "lost"  # another process took over its victims
    OTHER = "other"


def should_retry(
    failure: AttemptFailure, *, conflicts: int, attempts_left: int,
    left_s: float, outdated: bool = False, ) -> bool:
    """Return whether a failed request is decided anew.

    Retried are lost races, claims on a host that did not answer, which the
    next attempt excludes, and attempts on outdated capacity. Any other failure
    would repeat.

    :param conflicts: how many claims failed in such a way
    :param left_s: the time until the request must be answered
    :param outdated: whether hosts have more capacity than was known
    """
    may_differ = (
        conflicts > 0 or outdated if failure is AttemptFailure.NO_HOST
        else failure is not AttemptFailure.OTHER)
    return may_differ and attempts_left > 0 and left_s > 0


#: Shares of the whole time, at most: for the answer to arrive, for victims to
#: end after their notice, and for the decision before it.
ANSWER_SHARE = 0.1
END_SHARE = 0.25
CHOICE_SHARE = 0.05
#: The most seconds that a decision may take.
CHOICE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class TimeBudget:
    """The time that a request has, in seconds.

    ``whole_s``: from its arrival until it must be answered. ``end_s``: the
    time that must remain when the notice of its victims is over.
    """

    whole_s: float
    end_s: float

    @property
    def notice_limit_s(self) -> int:
        """The longest notice that the request can wait for."""
        choice_s = min(CHOICE_S, self.whole_s * CHOICE_SHARE)
        return max(0, int(self.whole_s - self.end_s - choice_s))


def make_time_budget(
    patience_s: float, sign_s: float, termination_timeout_s: float
) -> TimeBudget:
    """Return the time budget of a request.

    A call that times out is not answered: an eviction after that serves
    nobody.

    :param patience_s: how long the caller waits for the answer
    :param sign_s: how long the caller waits for a heartbeat; a request was
        queued for no longer, or its caller has given up
    :param termination_timeout_s: how long victims may take to end after their
        notice. If that is most of the time, they are expected to end faster.
    """
    whole_s = max(0.0, patience_s - min(sign_s, patience_s * ANSWER_SHARE))
    return TimeBudget(whole_s, min(termination_timeout_s, whole_s * END_SHARE))
