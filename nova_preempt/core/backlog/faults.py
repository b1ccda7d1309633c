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
"""Keeps one request that raises an exception from failing a whole pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
import traceback
from typing import Any

from nova_preempt.core.backlog import model

#: What such a request waits for.
WAITS_FOR: Mapping[str, Any] = {
    "code": "fault",
    "text": "An error occurred while it was looked at; the log of "
    "nova-preempt-engine has it. The next pass tries again.",
}


class Faults:
    """Collects the exceptions of a pass.

    :ivar found: {uuid of the request: exception}
    """

    def __init__(self) -> None:
        self.found: dict[str, Exception] = {}

    def call(
        self,
        request: model.Request,
        look: Callable[[model.Request], Mapping[str, Any] | None],
    ) -> Mapping[str, Any] | None:
        """Return what look() does, or None if that raises an exception."""
        try:
            return look(request)
        except Exception as exc:  # noqa: BLE001 (whoever decides logs it)
            self.found[request.uuid] = exc
            return None


class News:
    """Tells which faults are new since the last pass, so that each is logged
    once as long as it lasts.
    """

    def __init__(self) -> None:
        self._known: dict[str, object] = {}

    def of(
        self, found: Mapping[str, Exception], unseen: Collection[str] = ()
    ) -> dict[str, Exception]:
        """Return the faults of a pass that the last one did not find.

        :param found: {uuid of the request: exception}
        :param unseen: the uuids of requests that the pass did not get to
        """
        before, self._known = self._known, {
            uuid: _kind(exc) for uuid, exc in found.items()}
        self._known.update({uuid: before[uuid] for uuid in unseen
                            if uuid in before and uuid not in found})
        return {uuid: exc for uuid, exc in found.items()
                if before.get(uuid) != self._known[uuid]}


def _kind(exc: Exception) -> object:
    """Return the type of an exception and where it was raised.

    Its text may have times or addresses.
    """
    return type(exc), [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(exc.__traceback__)]
