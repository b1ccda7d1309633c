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
"""Preemptions, questions about them, and pauses."""

from nova_preempt_tempest_plugin.services import base


class PreemptionClient(base.BaseClient):

    def list_preemptions(self, **query):
        return self._call(self.get, 'preemptions', **query)

    def show_preemption(self, preemption_id):
        return self._call(self.get, f'preemptions/{preemption_id}')

    def explain(self, **values):
        return self._call(self.post, 'explain', body={'explain': values})

    def simulate(self, **values):
        return self._call(self.post, 'simulate', 202,
                          body={'simulate': values})

    def list_placement_chances(self, flavor, **query):
        return self._call(self.get, 'placement-chances', flavor=flavor,
                          **query)

    def show_statistics(self, **query):
        return self._call(self.get, 'statistics', **query)

    def list_pauses(self):
        return self._call(self.get, 'pauses')

    def pause(self, what, reason):
        return self._call(self.put, f'pauses/{what}',
                          body={'pause': {'reason': reason}})

    def resume(self, what):
        return self._call(self.delete, f'pauses/{what}', 204)
