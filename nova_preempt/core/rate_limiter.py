# SPDX-License-Identifier: Apache-2.0
"""Limits the processing time that each client may use.

A token bucket of seconds: the cost of a query is known only after it was
answered, so a client may overdraw its bucket and then waits until the bucket
is positive again.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class RateLimit:
    """Limits on the work that one client may cause.

    :ivar at_once_s: seconds of work without a pause, the size of the bucket
    :ivar share: the fraction of time that refills the bucket
    :ivar most_running: queries that may run at the same time
    """

    at_once_s: float
    share: float
    most_running: int


@dataclasses.dataclass(slots=True)
class _Account:
    left_s: float
    at_s: float
    running: int = 0


class RateLimiter:
    """Token buckets by client. All times are of one clock, in seconds."""

    def __init__(self, terms: RateLimit) -> None:
        self._terms = terms
        self._accounts: dict[str, _Account] = {}

    def begin(self, client: str, now_s: float) -> float:
        """Return 0 if a query may begin, else the seconds to wait."""
        account = self._account(client, now_s)
        if account.running >= self._terms.most_running:
            return 1
        if account.left_s <= 0:
            return max(1, -account.left_s / self._terms.share)
        account.running += 1
        return 0

    def end(self, client: str, began_s: float, now_s: float) -> None:
        """Charge a client for a query that has ended."""
        account = self._account(client, now_s)
        account.running -= 1
        account.left_s -= max(0, now_s - began_s)

    def _account(self, client: str, now_s: float) -> _Account:
        """Refill all buckets and return that of a client."""
        for name, item in list(self._accounts.items()):
            earned_s = max(0, now_s - item.at_s) * self._terms.share
            item.left_s = min(self._terms.at_once_s, item.left_s + earned_s)
            item.at_s = now_s
            if item.left_s >= self._terms.at_once_s and not item.running:
                del self._accounts[name]
        return self._accounts.setdefault(
            client, _Account(self._terms.at_once_s, now_s))
