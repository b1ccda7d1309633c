# SPDX-License-Identifier: Apache-2.0
"""Finds servers with one-time-use PCI devices.

With ``one_time_use`` in ``[pci]device_spec`` (Nova 2025.2) a device stays
reserved after its use until an operator has cleaned it. Shelving such a server
does not free its device, and unshelving it takes another device.
"""

import threading
import time

from oslo_log import log as logging

from nova_preempt.cloud import parallel_calls
from nova_preempt.cloud import placement_api

LOG = logging.getLogger(__name__)

TRAIT = 'HW_PCI_ONE_TIME_USE'

# How long the list of devices is valid, and how long to wait before the next
# attempt after Placement has failed, in seconds.
MAX_AGE_S = 60
RETRY_S = 10

# Servers read before the results are stored.
_PIECE = 100


class OneTimeDevices:
    """Remembers which servers have such a device, per node.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param monotonic: a clock, in seconds
    """

    def __init__(self, placement, monotonic=time.monotonic):
        self._placement = placement
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._listed_until = self._retry_at = float('-inf')
        self._by_node = {}        # node: uuids of providers of such devices
        self._servers = {}        # uuid: (node, flavor)
        self._has = {}            # uuid: whether it has a device, if known

    def may_have(self, uuid, node, flavor):
        """Return whether a server with PCI devices may have such a device.

        Does no I/O, see refresh(). The answer is reset when node or flavor
        change.
        """
        with self._lock:
            if self._servers.get(uuid) != (node, flavor):
                self._servers[uuid] = node, flavor
                self._has.pop(uuid, None)
            return self._has.get(uuid, True)

    def forget(self, uuid):
        """Forget a server that is gone."""
        with self._lock:
            self._servers.pop(uuid, None)
            self._has.pop(uuid, None)

    def refresh(self):
        """Read unknown or outdated answers from Placement.

        :returns: uuids of the servers for which may_have() was updated
        """
        told, now = set(), self._monotonic()
        # While another thread reads, callers use the known answers.
        if (not self._servers or now < self._retry_at
                or not self._asking.acquire(blocking=False)):
            return told
        try:
            if now >= self._listed_until:
                self._note_devices(self._list_devices())
                self._listed_until = now + MAX_AGE_S
            self._ask(told)
        except placement_api.PlacementError as exc:
            self._retry_at = now + RETRY_S
            LOG.warning(
                'Cannot tell which servers have one-time-use PCI devices; '
                'servers without an answer count as having such a device, '
                'and are not shelved: %s', exc)
        finally:
            self._asking.release()
        return told

    def _list_devices(self):
        """Return {node: uuids of the providers of such devices}."""
        # Older releases do not know the trait.
        if TRAIT not in self._placement.list_traits():
            return {}
        by_root = {}
        for provider in self._placement.list_all_providers(
                [('required', TRAIT)]):
            by_root.setdefault(provider.root_uuid, set()).add(provider.uuid)
        return {root.name: by_root[root.uuid]
                for root in self._placement.list_providers([])
                if root.uuid in by_root} if by_root else {}

    def _note_devices(self, by_node):
        with self._lock:
            for uuid, (node, _) in self._servers.items():
                if by_node.get(node) != self._by_node.get(node):
                    self._has.pop(uuid, None)
            self._by_node = by_node

    def _ask(self, told):
        with self._lock:
            unknown = [(uuid, place) for uuid, place in self._servers.items()
                       if uuid not in self._has]
        for start in range(0, len(unknown), _PIECE):
            piece = unknown[start:start + _PIECE]
            has = parallel_calls.call(self._look, piece)
            with self._lock:
                for (uuid, place), answer in zip(piece, has, strict=True):
                    if self._servers.get(uuid) == place:
                        self._has[uuid] = answer
                        told.add(uuid)

    def _look(self, item):
        uuid, (node, _) = item
        devices = self._by_node.get(node)
        return bool(devices) and not devices.isdisjoint(
            self._placement.get_consumer(uuid).allocations)
