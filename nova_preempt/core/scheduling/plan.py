# SPDX-License-Identifier: Apache-2.0

"""Plan for one server on one host: its victims and kept space."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import host_requirements
from nova_preempt.core import lazy_ordering
from nova_preempt.core.model import (
    Host,
    Resources,
    Server,
    Slot,
    SlotAmounts,
    VictimSet,
)

#: The trait of providers that are PCI devices as Nova reports them.
_PCI_DEVICE = "COMPUTE_MANAGED_PCI_DEVICE"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The request on this host, once these victims are gone.

    ``missing`` is what they have to free; empty where the host has room, and
    lacks only what filters ask for, or nothing. ``servers``: those that may
    end there, by uuid. ``joins``: uuids of the decisions that end the victims
    in any case; the request waits for that, beside others that ask for
    ``waiting``.
    """

    host: Host
    missing: SlotAmounts
    victim_set: VictimSet
    servers: Mapping[str, Server]
    joins: tuple[str, ...] = ()
    waiting: tuple[Resources, ...] = ()

    @property
    def victims(self) -> tuple[Server, ...]:
        """Who has to be gone, in order of uuid."""
        return tuple(self.servers[each.uuid]
                     for each in self.victim_set.victims)

    @property
    def cost_us(self) -> int:
        return self.victim_set.cost

    @property
    def key(self) -> lazy_ordering.Key:
        """What plans that need victims are ordered by."""
        return (
            self.victim_set.cost,
            0 if self.joins else len(self.victim_set.victims), self.host.name,
            self.host.uuid)

    def devices(self) -> dict[str, dict[str, int]]:
        """Return what is missing of providers below the host, by name."""
        names = {each.uuid: each.name for each in self.host.providers}
        found: dict[str, dict[str, int]] = {}
        for (uuid, name), amount in sorted(self.missing.items()):
            if uuid != self.host.uuid:
                found.setdefault(names[uuid] or uuid, {})[name] = amount
        return found

    def taking(self, amounts: SlotAmounts) -> Plan | None:
        """Return the plan for a server that takes so much, by slot.

        None if what its victims free is not enough for that, or one of these
        providers is not there any more.
        """
        there = {each.uuid for each in self.host.providers}
        if not there.issuperset(uuid for uuid, _ in amounts):
            return None
        lack = host_requirements.missing(self.host, amounts)
        freed = capacity.total(
            each.resources for each in self.victim_set.victims)
        if not capacity.fits(lack, freed):
            return None
        return dataclasses.replace(self, missing=lack)

    def retained(self) -> dict[str, dict[Slot, int]]:
        """Return what each victim keeps until it is gone, by its uuid.

        Only what is missing is taken from them. The rest stays allocated as
        long as they live: until then it is not free, and a roll-back needs
        it. What a provider would refuse as an allocation (less than min_unit,
        not a multiple of step_size) cannot be kept.
        """
        missing = dict(self.missing)
        inventories = {
            provider.uuid: provider.inventories
            for provider in self.host.providers
        }
        kept: dict[str, dict[Slot, int]] = {}
        for victim in self.victim_set.victims:
            rest = kept[victim.uuid] = {}
            for slot, amount in self.host.held(victim.uuid).items():
                taken = min(victim.resources.get(slot, 0),
                            missing.get(slot, 0))
                missing[slot] = missing.get(slot, 0) - taken
                inventory = inventories[slot[0]][slot[1]]
                left = min(amount - taken, inventory.max_unit)
                left -= left % inventory.step_size
                if left >= max(1, inventory.min_unit):
                    rest[slot] = left
        return kept

    def displaced(self) -> frozenset[str]:
        """Return the uuids of victims that lose PCI devices.

        Of a server that has any allocation nova-compute restores those of its
        devices, and fails where they are another's. So these must have none:
        somebody else has to hold what is retained for them.
        """
        devices = {
            provider.uuid
            for provider in self.host.providers
            if _PCI_DEVICE in provider.traits
        }
        if not devices:
            return frozenset()
        return frozenset(
            uuid for uuid, rest in self.retained().items()
            if any(
                slot[0] in devices and rest.get(slot) != amount
                for slot, amount in self.host.held(uuid).items()))
