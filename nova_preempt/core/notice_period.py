# SPDX-License-Identifier: Apache-2.0
"""Length of the notice that a preemptible server gets before its eviction."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class NoticeRule:
    """The bounds that an operator sets on notices, in seconds.

    ``longest_s`` wins if it is less than ``shortest_s``.
    """

    default_s: int
    shortest_s: int = 0
    longest_s: int = 2**31 - 1

    def length_s(self, asked_s: int | None) -> int:
        """Return the length of a notice.

        :param asked_s: the extra spec of the flavor, None if it has none
        """
        wanted_s = self.default_s if asked_s is None else asked_s
        return min(max(wanted_s, self.shortest_s), self.longest_s)


#: Added to the lead time of a notice where a host must be empty at a set time:
#: the engine polls every few seconds, and Nova needs time for each call.
MARGIN_S = 30


def lead_s(
    notice_s: int, termination_timeout_s: int, migrate_timeout_s: int = 0
) -> int:
    """Return how long before its host must be empty a server gets notice.

    :param termination_timeout_s: how long the eviction may take after the
        notice
    :param migrate_timeout_s: how long a live migration may take before that, 0
        if none is tried
    """
    return notice_s + termination_timeout_s + migrate_timeout_s + MARGIN_S
