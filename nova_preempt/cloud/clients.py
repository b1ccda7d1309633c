# SPDX-License-Identifier: Apache-2.0
"""Clients of Nova and Placement that a service shares."""

from collections.abc import Callable
import dataclasses

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api


@dataclasses.dataclass(frozen=True)
class Clients:
    """The clients of a service.

    :ivar get_cells: returns {uuid: CellMapping} of the cells with servers
    """

    nova: nova_api.NovaAPI
    placement: placement_api.Placement
    get_cells: Callable
