# SPDX-License-Identifier: Apache-2.0
"""The services that everybody calls."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api


@dataclasses.dataclass(frozen=True)
class Clients:
    """Where Nova and Placement are reached.

    :ivar get_cells: returns {uuid: CellMapping} to look for servers in
    """

    nova: nova_api.NovaAPI
    placement: placement_api.Placement
    get_cells: Callable
