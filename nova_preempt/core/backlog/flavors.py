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
"""Which flavors of a request come into question in a pass."""

from __future__ import annotations

from typing import Protocol

from nova_preempt.core.backlog import model


class Ladders(Protocol):
    """Which flavors come into question, see ``ladders.py``."""

    def alternatives(
        self, request: model.Request
    ) -> tuple[model.Alternative, ...]:
        """Return them in order of preference."""

    def start(
        self,
        request: model.Request,
        alternative: model.Alternative,
        count: int,
    ) -> None:
        """Servers of a request start."""


class AsAsked:
    """All that the user named."""

    def alternatives(
        self, request: model.Request
    ) -> tuple[model.Alternative, ...]:
        return request.alternatives

    def start(
        self,
        request: model.Request,
        alternative: model.Alternative,
        count: int,
    ) -> None:
        pass
