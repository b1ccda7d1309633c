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
"""Whether this engine is in a position to tell that hosts are down.

Computes report over the message bus. An engine that does not reach itself
there cannot tell a host that is down from a bus that is.
"""

from nova_preempt import exceptions
from nova_preempt.cloud import contexts


class Sight:
    """Says why nothing can be told, '' if it can.

    :param client: an rpc.EngineClient
    :param server: the name under which this engine answers
    """

    def __init__(self, client, server):
        self._client = client
        self._server = server

    def __call__(self):
        try:
            self._client.ping(contexts.admin(), self._server)
        except exceptions.NoAnswer as exc:
            return ('this engine does not reach itself over the message bus '
                    f'({exc})')
        return ''
