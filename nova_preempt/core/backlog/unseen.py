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
"""What those that wait are told while nobody knows how much room there is."""

from __future__ import annotations

from collections.abc import Iterable
import datetime

from nova_preempt.core.backlog import keeping
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.dispatch import Note
from nova_preempt.core.backlog.estimate import to_s

#: A code of what a request waits for.
ROOM_UNKNOWN = "room_unknown"

_TEXT = (
    "How much room there is cannot be told now, as Nova, Placement or a cell "
    "does not answer. Nothing starts until they do."
)


def notes(
    waiting: Iterable[model.Request], now: datetime.datetime
) -> dict[str, Note]:
    """Return the Notes of those that would come into question now.

    Who is not to start yet waits for that, whoever is away. Positions stay as
    they were; how long it takes nobody can tell.
    """
    return {
        request.uuid: Note(
            request.position,
            {"code": ROOM_UNKNOWN, "text": _TEXT,
             **keeping.remembered(request)},
            None,
        )
        for request in waiting
        if not to_s(request.not_before, now)
        and not to_s(request.next_try_at, now)
    }
