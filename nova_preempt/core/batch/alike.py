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
"""Servers of one request, all of them alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova_preempt.core import model as core_model
from nova_preempt.core.batch import model
from nova_preempt.core.batch.choice import Placer

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"

_UUID = "servers"
_GROUP = "group"


def place(
    placer: Placer,
    wanted: core_model.Resources,
    count: int,
    hosts: Iterable[model.HostState],
    policy: str = "",
    most: int = 1,
) -> Mapping[str, int]:
    """Return {host: how many of them}, {} if not all have room.

    :param wanted: by each
    :param policy: of their server group, as Nova calls it
    :param most: of anti-affinity: on a host
    """
    found = placer.place([model.Request(
        _UUID, 0, core_model.Request.of(wanted), count, count,
        together=(_GROUP,) if policy == AFFINITY else (),
        apart=(model.Apart(_GROUP, most),) if policy == ANTI_AFFINITY else (),
    )], hosts)
    return found.placed.get(_UUID, {})
