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
"""What groups of hosts have to spare beyond what shall stay free on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses

from nova_preempt.core.model import Provider, Resources


def parse(text: str) -> dict[str, tuple[int, bool]]:
    """{class: (amount, is it a percentage)} of "VCPU:10%,MEMORY_MB:8192".

    :raises ValueError: it says what cannot be understood
    """
    wanted = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        name, colon, amount = item.partition(':')
        percent = amount.endswith('%')
        number = amount.removesuffix('%')
        if not (colon and name and number.isdecimal()) or (
                percent and int(number) > 100):
            raise ValueError(
                f'{item!r}: headroom is CLASS:AMOUNT or CLASS:PERCENT%, such '
                'as VCPU:10% or MEMORY_MB:65536')
        wanted[name] = (int(number), percent)
    return wanted


def free(provider: Provider) -> dict[str, int]:
    """{class: what is not used}, below 0 where more is used than there is."""
    return {name: provider.free(name) for name in provider.inventories}


@dataclasses.dataclass(frozen=True)
class Group:
    """Hosts of which some space shall be free, by name.

    For wanted see parse().
    """

    name: str
    wanted: Mapping[str, tuple[int, bool]]
    nodes: Mapping[str, Provider]

    def uuids(self) -> set[str]:
        """Of the providers."""
        return {provider.uuid for provider in self.nodes.values()}

    def capacity(self, resource_class: str) -> int:
        return sum(provider.inventories[resource_class].capacity
                   for provider in self.nodes.values()
                   if resource_class in provider.inventories)

    def spare(self) -> dict[str, int]:
        """{class: what is free beyond the headroom}, below 0 if it lacks."""
        found = dict.fromkeys(self.wanted, 0)
        for provider in self.nodes.values():
            for name, amount in free(provider).items():
                if name in found:
                    # An overfull host takes nothing from others.
                    found[name] += max(0, amount)
        return {name: found[name] - self._headroom(name)
                for name in self.wanted}

    def _headroom(self, resource_class: str) -> int:
        amount, percent = self.wanted[resource_class]
        capacity = self.capacity(resource_class)
        if percent:
            amount = -(-capacity * amount // 100)
        return min(amount, capacity)

    def missing(self, freeing: Resources) -> dict[str, int]:
        """{class: amount} that is neither free nor being freed."""
        lacks = {name: -left - freeing.get(name, 0)
                 for name, left in self.spare().items()}
        return {name: lack for name, lack in lacks.items() if lack > 0}


class Spares:
    """What each of several groups has to spare, as it is taken.

    A host may be in several groups.
    """

    def __init__(self, groups: Iterable[Group] = ()) -> None:
        self._spares = [(group.uuids(), group.spare()) for group in groups]

    def lacks(self, provider_uuid: str, resources: Resources) -> bool:
        """Whether there is less to spare around a host than this."""
        return any(spare[name] < amount
                   for uuids, spare in self._spares if provider_uuid in uuids
                   for name, amount in resources.items()
                   if amount and name in spare)

    def take(self, provider_uuid: str, resources: Resources) -> None:
        self._change(provider_uuid, resources, -1)

    def give_back(self, provider_uuid: str, resources: Resources) -> None:
        self._change(provider_uuid, resources, 1)

    def _change(self, provider_uuid: str, resources: Resources,
                sign: int) -> None:
        for uuids, spare in self._spares:
            if provider_uuid in uuids:
                for name in spare.keys() & resources.keys():
                    spare[name] += sign * resources[name]
