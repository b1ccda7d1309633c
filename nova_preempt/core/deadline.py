# SPDX-License-Identifier: Apache-2.0
"""Time budget of one request.

Who asked gives up after a time. Whatever is done for the request later is
done in vain: a server that ends then ends for nobody.
"""

from __future__ import annotations

import dataclasses

#: of the whole time, at most: for the answer's way, for the ends of victims
#: after their notice, and for choosing before it
ANSWER_SHARE = 0.1
END_SHARE = 0.25
CHOICE_SHARE = 0.05
#: choosing takes seconds at most, however long the whole is
CHOICE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
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


def make_times(
    patience_s: float, sign_s: float, termination_timeout_s: float) -> Times:
    """Return the times of a request.

    :param patience_s: how long who asks waits for the answer
    :param sign_s: how long without a sign that the request is worked on; so
        it was in a queue for no longer than this, or it has been given up
    :param termination_timeout_s: how long victims may take to end after
        their notice. Where that is most of the time that there is, the end
        is expected to be faster.
    """
    whole_s = max(0.0, patience_s - min(sign_s, patience_s * ANSWER_SHARE))
    return Times(whole_s, min(termination_timeout_s, whole_s * END_SHARE))
