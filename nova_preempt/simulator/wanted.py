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
"""Tells core.wanted which requests still exist in a simulation."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from nova_preempt.core.reservation import model


class Requests:
    """Implements core.wanted.Port.

    :param parts: a run.Parts
    :ivar reserved: returns a reservation, None if there is none
    :ivar is_short: whether less is free than the headroom wants
    """

    def __init__(self, parts: Any) -> None:
        self._parts = parts
        self.reserved: Callable[[str], model.Reservation | None] = (
            lambda uuid: None)
        self.is_short: Callable[[], bool] = lambda: False

    def is_gone(self, server_uuid: str) -> bool:
        return server_uuid not in self._parts.servers

    def are_hosts_emptied(self) -> bool:
        return self._parts.options.reservations is not None

    def reservation(self, uuid: str) -> model.Reservation | None:
        return self.reserved(uuid)

    def lacks_headroom(self, providers: Collection[str]) -> bool:
        return self.is_short()
