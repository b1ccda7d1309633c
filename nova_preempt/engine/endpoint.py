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
"""What the API asks of the engine."""

import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt import requester
from nova_preempt.db import decisions

TOPIC = 'nova_preempt_engine'

SIMULATE = 'simulate'


class EvictionEndpoint:
    """An RPC endpoint. Every engine serves it, also those that do not act.

    :param servers: a nova_preempt.cloud.servers.ServerCache
    :param ends: a nova_preempt.engine.evictions.Evictions
    """

    target = messaging.Target(version='1.0')

    def __init__(self, servers, ends):
        self._servers = servers
        self._ends = ends

    @messaging.expected_exceptions(exceptions.PreemptError)
    def simulate(self, context, server_uuid, project_id, reason):
        """See nova_preempt.rpc.EngineClient."""
        self._servers.refresh()
        server = self._servers.get(server_uuid)
        if server is None:
            self._refuse_unknown(server_uuid, project_id)
        if project_id not in (None, server.project_id):
            raise exceptions.ServerNotFound(
                f'There is no server {server_uuid}.')
        why_not = self._ends.why_not(server)
        if why_not:
            raise exceptions.CannotEnd(
                f'Server {server_uuid} cannot end now: {why_not}.')
        try:
            return self._ends.begin(
                server, SIMULATE,
                reason or ('its owner asked for it' if context.project_id
                           == server.project_id else
                           'an administrator asked for it'),
                asked_by=requester.describe(context))
        except decisions.AlreadyEnding:
            raise exceptions.AlreadyEnding(
                f'Server {server_uuid} ends already.') from None

    def _refuse_unknown(self, uuid, project_id):
        """Say why a server is none of the preemptible ones."""
        found = self._servers.find(uuid)
        if found is None or project_id not in (None, found.project_id):
            raise exceptions.ServerNotFound(f'There is no server {uuid}.')
        if not found.host:
            raise exceptions.CannotEnd(f'Server {uuid} is not on any host.')
        raise exceptions.NotPreemptible(f'Server {uuid} is not preemptible.')
