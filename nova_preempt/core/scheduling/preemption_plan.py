# SPDX-License-Identifier: Apache-2.0

"""Plan for one server on one host: its victims and their allocations."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import fit_and_victims
from nova_preempt.core import lazy_ordering
from nova_preempt.core.model import (
    Host,
    PreemptibleServer,
    Resources,
    Slot,
    SlotAmounts,
    VictimSet,
)

#: The trait of providers that are PCI devices as Nova reports them.
_PCI_DEVICE = "COMPUTE_MANAGED_PCI_DEVICE"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The placement of a request on a host after its victims are gone.

    ``missing``: the amounts that victims have to free; empty if the host has
    capacity and fails only filters, or nothing. ``servers``: the candidates
    there, by uuid. ``joins``: uuids of the decisions that evict the victims in
    any case; the request waits for them, beside others that ask for
    ``waiting``.
    """

    host: Host
    missing: SlotAmounts
    victim_set: VictimSet
    servers: Mapping[str, PreemptibleServer]
    joins: tuple[str, ...] = ()
    waiting: tuple[Resources, ...] = ()

    @property
    def victims(self) -> tuple[PreemptibleServer, ...]:
        """The servers that must be gone, in order of uuid."""
        return tuple(self.servers[each.uuid]
                     for each in self.victim_set.victims)

    @property
    def cost_us(self) -> int:
        return self.victim_set.cost

    @property
    def key(self) -> lazy_ordering.Key:
        """Sort key of plans that need victims."""
        return (
            self.victim_set.cost,
            0 if self.joins else len(self.victim_set.victims), self.host.name,
            self.host.uuid)

    def devices(self) -> dict[str, dict[str, int]]:
        """Return the missing amounts on nested providers, by provider name."""
        names = {each.uuid: each.name for each in self.host.providers}
        found: dict[str, dict[str, int]] = {}
        for (uuid, name), amount in sorted(self.missing.items()):
            if uuid != self.host.uuid:
                found.setdefault(names[uuid] or uuid, {})[name] = amount
        return found

    def taking(self, amounts: SlotAmounts) -> Plan | None:
        """Return the plan for a server with these allocations, by slot.

        None if its victims do not free enough, or a provider does not exist
        any more.
        """
        there = {each.uuid for each in self.host.providers}
        if not there.issuperset(uuid for uuid, _ in amounts):
            return None
        lack = fit_and_victims.missing(self.host, amounts)
        freed = capacity.total(
            each.resources for each in self.victim_set.victims)
        if not capacity.fits(lack, freed):
            return None
        return dataclasses.replace(self, missing=lack)

    def retained(self) -> dict[str, dict[Slot, int]]:
        """Return the allocations that each victim keeps until it is gone.

        Only the missing amounts are taken from victims. The rest stays
        allocated while they exist: it is not free until then, and a roll-back
        needs it. An amount that a provider would refuse (less than min_unit,
        not a multiple of step_size) cannot be kept.

        :returns: {uuid of the victim: {slot: amount}}
        """
        missing = dict(self.missing)
        inventories = {each.uuid: each.inventories
                       for each in self.host.providers}
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

        nova-compute restores the device allocations of a server that has any
        allocation, and fails if another consumer holds the devices. So these
        victims must have none: a stand-in holds what is retained for them.
        """
        devices = {each.uuid for each in self.host.providers
                   if _PCI_DEVICE in each.traits}
        if not devices:
            return frozenset()
        return frozenset(
            uuid for uuid, rest in self.retained().items()
            if any(
                slot[0] in devices and rest.get(slot) != amount
                for slot, amount in self.host.held(uuid).items()))
