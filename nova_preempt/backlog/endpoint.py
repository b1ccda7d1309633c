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
"""What the API asks of the engine about requests that wait."""

import oslo_messaging as messaging

from nova_preempt import rpc


class BacklogEndpoint:
    """An RPC endpoint; see rpc.EngineClient for what it answers.

    Every engine serves it, also those that do not act.

    :param backlog: a nova_preempt.backlog.service.Backlog
    """

    target = messaging.Target(namespace=rpc.BACKLOG, version='1.0')

    def __init__(self, backlog):
        self._backlog = backlog

    def plan(self, context):
        return self._backlog.plan()
