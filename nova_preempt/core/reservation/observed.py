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
"""What the controller of an open reservation looks at."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
import dataclasses
from typing import Protocol

from nova_preempt.core.energy import candidates
from nova_preempt.core.model import Cap
from nova_preempt.core.reservation import drain
from nova_preempt.core.reservation import model


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host that the reservation holds, as it is now.

    :ivar dark: whether its cell cannot be read
    :ivar usable: whether Nova would place a server there, were it on
    :ivar off: what is known of it if it is not on, None if it is
    """

    dark: bool = False
    usable: bool = True
    off: candidates.Off | None = None


class View(Protocol):
    """An open reservation, its hosts and what is on them, as they are now."""

    @property
    def reservation(self) -> model.Reservation:
        """The reservation."""

    @property
    def leads_s(self) -> Collection[float]:
        """How long before a start there is anything to do."""

    @property
    def down(self) -> Collection[str]:
        """The names of hosts that are given up; see healing."""

    @property
    def running(self) -> Mapping[str, model.Reservation]:
        """The reservations whose servers stay where they are."""

    def host(self, name: str) -> Host | None:
        """Return a host, None if nobody lists it."""

    def servers(self, name: str) -> Sequence[drain.Server]:
        """Return the servers that are on a host."""

    def caps(self, servers: Collection[str]) -> Collection[Cap]:
        """Return how many of these preemptible servers may be evicted now."""

    def evicting(self) -> Container[str]:
        """Return the uuids of servers whose eviction has begun."""

    def is_free(self, name: str, servers: Collection[str]) -> bool | None:
        """Whether only these servers use a host, None if nobody can tell."""

    def candidates(self) -> Sequence[str]:
        """Return the hosts that it could be given, the best ones first."""

    def former(self) -> Collection[str]:
        """Return the hosts that it has lost and that are free again."""
