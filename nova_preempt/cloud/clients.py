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
"""The services that everybody calls."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement


@dataclasses.dataclass(frozen=True)
class Clients:
    """Where Nova and Placement are reached.

    :ivar get_cells: returns {uuid: CellMapping} to look for servers in
    """

    nova: nova_api.NovaAPI
    placement: placement.Placement
    get_cells: Callable
