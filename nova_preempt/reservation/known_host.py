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
"""A host as it was read last."""

import dataclasses

from nova_preempt.core.energy import candidates


@dataclasses.dataclass(frozen=True)
class Host:
    """A node on which servers can run, as it was read last."""

    name: str
    service_host: str
    provider_uuid: str
    state: str                 # 'up' or 'down'
    status: str                # 'enabled' or 'disabled'
    properties: dict
    reservable: bool = True
    flops_per_watt: float | None = None
    disabled_reason: str = ''
    # It is off, and counts as up since it can be woken.
    asleep: candidates.Off | None = None

    @property
    def is_usable(self):
        """Whether Nova would place a server there."""
        return self.state == 'up' and self.status == 'enabled'

    def as_reported(self, service):
        """The same as Nova has its service now, if it knows."""
        if 'state' not in service:
            return self
        changed = {'state': 'down' if service.get('forced_down')
                   else service['state'], 'status': service['status']}
        return dataclasses.replace(
            self, properties={**self.properties, **changed},
            disabled_reason=service.get('disabled_reason') or '', **changed)
