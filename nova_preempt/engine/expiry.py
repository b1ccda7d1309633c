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
"""Servers whose time is over: at a maximum run time, or after retention."""

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import nova_api
from nova_preempt.core import expiry as core
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import eviction_policy

LOG = logging.getLogger(__name__)

MAXIMUM_RUNTIME = 'maximum_runtime'


class Expiry:
    """Ends what has run, or was kept, for long enough.

    :param process: a nova_preempt.handover.process.Process
    :param servers: a nova_preempt.cloud.servers.ServerCache
    :param nova: a NovaAPI
    :param ends: a nova_preempt.engine.evictions.Evictions
    """

    def __init__(self, process, servers, nova, ends):
        self._process = process
        self._servers = servers
        self._nova = nova
        self._ends = ends

    def end_old_servers(self):
        """Give notice to servers that have reached their maximum run time."""
        process = self._process
        if process.pauses.why(pauses.PREEMPTION):
            return
        now = process.clock()
        actions = process.options.actions
        of_all_s = process.options.maximum_runtime_s
        for server in self._servers.servers():
            limit_s = core.limit_s(server.maximum_runtime_s, of_all_s)
            # Most servers have none, and the rest takes a while.
            if not limit_s:
                continue
            action = eviction_policy.get_action(server, actions)
            if core.is_over(server, limit_s, action, server.uptime_us(now)):
                self._end(server, limit_s)

    def _end(self, server, limit_s):
        try:
            self._ends.begin(
                server, MAXIMUM_RUNTIME,
                f'it has run for its {limit_s} s', restore=False)
        except decisions.AlreadyEnding:
            LOG.debug('Server %s ends already.', server.uuid)

    def delete_stopped(self):
        """Delete victims that were stopped long enough ago."""
        if self._process.pauses.why(pauses.PREEMPTION):
            return
        retention_s = self._process.options.stop_retention_s
        for decision_uuid, victim in self._process.decisions.get_victims(
                decisions.STOPPED):
            stopped = timeutils.utcnow() - victim.ended_at
            if core.is_kept(stopped.total_seconds(), retention_s):
                continue
            try:
                self._delete(decision_uuid, victim.server_uuid)
            except nova_api.NovaError as exc:
                LOG.warning('Server %(uuid)s, which was stopped to give way, '
                            'cannot be deleted yet: %(exc)s',
                            {'uuid': victim.server_uuid, 'exc': exc})

    def _delete(self, decision_uuid, uuid):
        if self._nova.get(uuid) is None:
            self._process.decisions.update_victim(decision_uuid, uuid,
                                                  decisions.GONE)
            return
        LOG.info('Deleting server %s, which was stopped to give way.', uuid)
        self._nova.force_delete(uuid)
