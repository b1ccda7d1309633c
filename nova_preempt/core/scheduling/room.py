# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Which hosts have room for a request without anybody ending."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from nova_preempt.core.model import Resources


class Room:
    """What is free on hosts, less what servers of the request have got.

    :param asked: what each server asks for, by class
    """

    def __init__(self, asked: Resources) -> None:
        self._asked = asked
        self._free: dict[str, dict[str, int]] = {}
        self._other_form: dict[str, Resources] = {}

    def __bool__(self) -> bool:
        """Tell whether any has, or had, room."""
        return bool(self._free)

    def __iter__(self) -> Iterator[str]:
        """Return the hosts that had room when it was asked."""
        return iter(self._free)

    def __contains__(self, host: object) -> bool:
        """Tell whether a host had room when it was asked."""
        return host in self._free

    def found(
        self,
        free: Mapping[str, Resources],
        asked: Resources | None = None,
        planned: Collection[str] = (),
    ) -> None:
        """Learn which hosts have room.

        :param free: {uuid of a host: {class: what is free}}
        :param asked: what is asked for there, if it is not what the request
            says; then only hosts that are new count
        :param planned: hosts that are not new
        """
        for uuid, amounts in free.items():
            if asked is None:
                self._free[uuid] = dict(amounts)
            elif uuid not in self._free and uuid not in planned:
                self._free[uuid] = dict(amounts)
                self._other_form[uuid] = asked

    def has(self, host: str) -> bool:
        """Tell whether the next server fits on a host."""
        free = self._free.get(host)
        return free is not None and all(
            free.get(name, amount) >= amount
            for name, amount in self._asked_on(host).items()
        )

    def take(self, host: str) -> None:
        """Note that a server has got a host, which may have had none."""
        free = self._free.get(host, {})
        for name, amount in self._asked_on(host).items():
            if name in free:
                free[name] -= amount

    def _asked_on(self, host: str) -> Resources:
        return self._other_form.get(host, self._asked)
