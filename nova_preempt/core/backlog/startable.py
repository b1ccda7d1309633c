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
"""Finds requests with servers to start once there is capacity."""

from __future__ import annotations

from collections.abc import Iterable
import datetime

from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import model


def among(
    requests: Iterable[model.Request], now: datetime.datetime
) -> list[model.Request]:
    """Return the requests of which servers are to be started."""
    return [request for request in requests if is_startable(request, now)]


def is_startable(request: model.Request, now: datetime.datetime) -> bool:
    """Tell whether servers of a request start once there is room."""
    if request.state == model.WAITING:
        return True
    states = [item.state for item in request.servers]
    if not model.missing(request) or (
        request.state not in (model.PARTLY_ACTIVE, model.EVICTED)
        or (request.state == model.EVICTED and model.AWAY in states)
    ):
        return False
    # What has given way comes back whenever that is.
    return model.ENDED in states or not boot_outcome.why_too_late(request, now)
