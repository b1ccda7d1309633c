# SPDX-License-Identifier: Apache-2.0
"""Finds nodes on which Nova has freed allocations.

Placement does not raise a provider's generation when a consumer's allocations
are deleted. So Nova's records of all servers, preemptible or not, are read for
servers that were deleted, have moved, or whose resize is over.
"""

import threading
import time

from nova.compute import vm_states

# How long a node is reported after a server has moved away, in seconds: Nova
# frees the allocation a moment later.
SETTLE_S = 30


class DepartureTracker:
    """Remembers the node of each server to report the nodes it leaves.

    :param tell: called with the names of nodes that servers have left or are
        leaving
    :param monotonic: a clock, in seconds
    """

    def __init__(self, tell=None, monotonic=time.monotonic):
        self.tell = tell or (lambda nodes: None)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._nodes = {}          # server uuid: node
        self._resized = {}        # server uuid: node a revert returns it to
        self._gone = {}           # server uuid: when it was seen deleted
        self._until = {}          # node: until when it is reported

    def note(self, instances):
        """Report the nodes that servers have left by these changes.

        Moves are reported repeatedly for SETTLE_S; a deletion once more after
        its end, when Nova has freed the allocation.

        :param instances: Instances that have changed since the last call
        """
        with self._lock:
            now = self._monotonic()
            nodes = set()
            for instance in instances:
                if instance.vm_state == vm_states.DELETED:
                    nodes |= self._deleted(instance, now)
                else:
                    for node in self._moved(instance):
                        self._until[node] = now + SETTLE_S
            self._gone = {uuid: when for uuid, when in self._gone.items()
                          if now - when <= 4 * SETTLE_S}
            nodes |= self._until.keys()
            self._until = {node: until for node, until
                           in self._until.items() if now < until}
        if nodes:
            self.tell(nodes)

    def _deleted(self, instance, now):
        last = {self._nodes.get(instance.uuid), instance.node,
                self._resized.get(instance.uuid)} - {None}
        if instance.uuid in self._gone:
            return set()
        if instance.deleted:
            self._gone[instance.uuid] = now
            self._nodes.pop(instance.uuid, None)
            self._resized.pop(instance.uuid, None)
        return last

    def _moved(self, instance):
        """Return the nodes that an existing server has left."""
        uuid = instance.uuid
        last, self._nodes[uuid] = self._nodes.get(uuid), instance.node
        left = {last} - {None, instance.node}
        if instance.vm_state == vm_states.RESIZED:
            # It keeps its allocation there until it is confirmed.
            if left:
                self._resized[uuid], = left
        elif uuid in self._resized:
            left |= {self._resized.pop(uuid)} - {instance.node}
        if not instance.node:
            del self._nodes[uuid]
        return left
