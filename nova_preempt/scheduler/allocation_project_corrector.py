# SPDX-License-Identifier: Apache-2.0
"""Corrects the project of the allocations of preemptible servers.

Nova counts what a project uses from Placement by the project that allocations
stand under. Those of preemptible servers can stand under another one
([preemption_quota]allocation_project_id): it is given where the scheduler
claims, and put right afterwards where others have claimed.
"""

import dataclasses
import time

from oslo_log import log as logging

from nova_preempt.cloud import placement_api

LOG = logging.getLogger(__name__)

# Nothing tells us of a change by "nova-manage placement heal_allocations", so
# each server is looked at again after this time, in seconds.
RECHECK_S = 3600

# How many servers are looked at in one go.
BATCH = 500


class ProjectCorrector:
    """Moves allocations of preemptible servers to a project.

    Nova's conductor claims by itself when a build or a resize goes to an
    alternate host, and so does a move to a forced host; and there are the
    servers from before the option was set.

    :param project_id: the project, '' to correct nothing
    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param view: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param monotonic: a clock, in seconds
    """

    def __init__(self, project_id, placement, view, monotonic=time.monotonic):
        self._project_id = project_id
        self._placement = placement
        self._view = view
        self._monotonic = monotonic
        self._checked = {}        # uuid: (what it was like, when)

    def run(self):
        """Check servers that changed, or were not checked for long."""
        if not self._project_id:
            return
        now = self._monotonic()
        servers = {uuid: server
                   for on_node in self._view.by_node().values()
                   for uuid, server in on_node.items()}
        self._checked = {uuid: (seen, when) for uuid, (seen, when)
                         in self._checked.items()
                         if uuid in servers and now - when < RECHECK_S}
        # Not while Nova works on it: it would lose the race for the
        # consumer's generation, and fail.
        due = [server for uuid, server in servers.items()
               if server.task_state is None
               and self._checked.get(uuid, (None,))[0] != _seen(server)]
        for server in due[:BATCH]:
            try:
                self._correct(server)
            except placement_api.Conflict:
                continue          # somebody is at work: next time
            except placement_api.PlacementError as exc:
                LOG.warning('Cannot correct the project of allocations yet: '
                            '%s', exc)
                return
            self._checked[server.uuid] = (_seen(server), now)

    def _correct(self, server):
        consumer = self._placement.get_consumer(server.uuid)
        if not consumer.allocations or (
                consumer.project_id == self._project_id):
            return
        self._placement.post_allocations([
            dataclasses.replace(consumer, project_id=self._project_id)])
        LOG.info('The allocations of preemptible server %(server)s now '
                 'belong to project %(project)s.',
                 {'server': server.uuid, 'project': self._project_id})


def _seen(server):
    return server.node, server.vm_state
