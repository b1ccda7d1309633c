# SPDX-License-Identifier: Apache-2.0
"""Bounds how much time the work for one client takes, whatever it costs.

A token bucket of seconds: what a question costs is known when it is answered,
so the client may go into debt with it, and waits until that is paid off.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class RateLimit:
    """Limits on the work that a client may cause.

    :ivar at_once_s: seconds of work without a pause
    :ivar share: of the time after that
    :ivar most_running: questions at the same time
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
    """Keeps the accounts of clients. Times are those of one clock, in s."""

    def __init__(self, terms: RateLimit) -> None:
        self._terms = terms
        self._accounts: dict[str, _Account] = {}

    def begin(self, client: str, now_s: float) -> float:
        """Return 0 if a question may begin, else in how many seconds."""
        account = self._account(client, now_s)
        if account.running >= self._terms.most_running:
            return 1
        if account.left_s <= 0:
            return max(1, -account.left_s / self._terms.share)
        account.running += 1
        return 0

    def end(self, client: str, began_s: float, now_s: float) -> None:
        """Note the end of a question that began."""
        account = self._account(client, now_s)
        account.running -= 1
        account.left_s -= max(0, now_s - began_s)

    def _account(self, client: str, now_s: float) -> _Account:
        """Return the account of a client as it is now."""
        for name, item in list(self._accounts.items()):
            earned_s = max(0, now_s - item.at_s) * self._terms.share
            item.left_s = min(self._terms.at_once_s, item.left_s + earned_s)
            item.at_s = now_s
            if item.left_s >= self._terms.at_once_s and not item.running:
                del self._accounts[name]
        return self._accounts.setdefault(
            client, _Account(self._terms.at_once_s, now_s))
