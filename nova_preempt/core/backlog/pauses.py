# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Whether a request that Nova refused pauses, or is tried again."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_preempt.core.backlog import answers
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.ledger import Ledger
from nova_preempt.core.backlog.shortfalls import Asking

RETRY = "retry"  # Nova has refused; it is tried again later

# How good the room is that was seen for one that Nova found no host for, at
# worst since then; so new room is known as such.
SEEN = "seen"
_NONE, _RECLAIMABLE, _FREE = range(3)


class Pauses:
    """Tells which requests pause in a pass.

    :param ledger: the room that is left
    :param asking: the pass
    """

    def __init__(self, ledger: Ledger, asking: Asking) -> None:
        self._ledger = ledger
        self._asking = asking

    def why(
        self, request: model.Request
    ) -> tuple[Mapping[str, Any] | None, int | None]:
        """Say why it is not tried again yet, None if it is.

        Where Nova found no host it is tried as soon as there is room that was
        not seen before. Where there is none it waits for that.

        :returns: the reason, and how good the room is at worst
        """
        seen = None
        if answers.refused(request) == answers.NO_HOST:
            before, now = request.waits_for.get(SEEN, _FREE), self._seen(
                request)
            seen = min(now, before)
            if not now or now > before:
                return None, seen
        if request.waits_for.get("code") in answers.CODES:
            return request.waits_for, seen
        return {
            "code": RETRY,
            "text": "Nova found no host for it "
            f"{request.tries} times; it is tried again at "
            f"{request.next_try_at}.",
        }, seen

    def _seen(self, request: model.Request) -> int:
        """Return how good the room is that there is for it."""
        group, least = self._asking.group(request), model.least(request)
        missing = model.missing(request)
        wanted = self._asking.alternatives(request)
        for seen, items in (
            (_FREE, [dataclasses.replace(item, preemptible=True)
                     for item in wanted]),
            (_RECLAIMABLE, wanted),
        ):
            if any(self._ledger.count(item, missing, group, least)
                   for item in items):
                return seen
        return _NONE
