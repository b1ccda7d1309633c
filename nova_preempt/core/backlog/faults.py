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

from collections.abc import Callable, Mapping
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
