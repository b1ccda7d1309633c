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
"""What the scheduler and the API ask of power control."""

import oslo_messaging as messaging

from nova_preempt.rpc import ENERGY


class PowerEndpoint:
    """An RPC endpoint. Every engine serves it, also those that do not act:
    it only writes what is to be done.

    :param control: a control.Control
    :param is_stopped: whether an operator wants no host to be switched now
    """

    target = messaging.Target(namespace=ENERGY, version='1.0')

    def __init__(self, control, is_stopped):
        self._control = control
        self._is_stopped = is_stopped

    def wake(self, context, request, servers, hosts):
        """See nova_preempt.rpc.EngineClient."""
        names, boot_s = ([], 0.0) if self._is_stopped() else (
            self._control.wake_for(request, servers, hosts))
        return {'hosts': names, 'boot_s': boot_s}
