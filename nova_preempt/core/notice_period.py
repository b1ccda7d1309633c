# SPDX-License-Identifier: Apache-2.0
"""Length of the notice that a preemptible server gets."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class NoticeRule:
    """What an operator allows, in seconds.

    ``longest_s`` counts where it is less than ``shortest_s``.
    """

    default_s: int
    shortest_s: int = 0
    longest_s: int = 2**31 - 1

    def length_s(self, asked_s: int | None) -> int:
        """Return the notice of a server whose flavor asks for so much."""
        wanted_s = self.default_s if asked_s is None else asked_s
        return min(max(wanted_s, self.shortest_s), self.longest_s)


#: How much earlier than it seems necessary a notice is given where a host
#: must be empty at a time: who looks does so every few seconds, and Nova takes
#: its time.
MARGIN_S = 30


def lead_s(
    notice_s: int, termination_timeout_s: int, migrate_timeout_s: int = 0
) -> int:
    """How long before its host must be empty a server gets its notice.

    :param termination_timeout_s: how long it may take to end after that
    :param migrate_timeout_s: how long it may take to be moved before that,
        0 where it is not tried
    """
    return notice_s + termination_timeout_s + migrate_timeout_s + MARGIN_S
