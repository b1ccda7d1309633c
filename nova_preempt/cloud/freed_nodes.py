# SPDX-License-Identifier: Apache-2.0
"""Finds nodes whose space has become free since the last look.

Placement does not count the deletion of a consumer's allocations as a change
of the provider, so it is told by Nova's records of all servers, normal ones
too: those that are deleted, that have moved, and those whose resize is over.
"""

import threading
import time

from nova.compute import vm_states

# For how long after a server has moved it is looked for space that is free
# again: Nova frees it a moment later.
SETTLE_S = 30


class FreedNodeTracker:
    """Where every server was last.

    :param tell: called with the names of nodes that servers have left, or are
        just leaving
    :param monotonic: a clock, in seconds
    """

    def __init__(self, tell=None, monotonic=time.monotonic):
        self.tell = tell or (lambda nodes: None)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._nodes = {}          # server uuid: node
        self._resized = {}        # server uuid: node that it may go back to
        self._gone = {}           # server uuid: when it was seen deleted
        self._until = {}          # node: how long it is still looked at

    def note(self, instances):
        """Tell which nodes servers have left by this.

        The last ones that have changed come again for a while; a deletion is
        told of once after its end, when Nova has freed its space.

        :param instances: Instances that have changed since the last time
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
        """The nodes that a server that lives has left."""
        uuid = instance.uuid
        last, self._nodes[uuid] = self._nodes.get(uuid), instance.node
        left = {last} - {None, instance.node}
        if instance.vm_state == vm_states.RESIZED:
            # It keeps its space there until it is confirmed.
            if left:
                self._resized[uuid], = left
        elif uuid in self._resized:
            left |= {self._resized.pop(uuid)} - {instance.node}
        if not instance.node:
            del self._nodes[uuid]
        return left
