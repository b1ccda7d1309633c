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
"""What hosts draw, and what was saved."""

from nova_preempt_tempest_plugin.services import base


class EnergyClient(base.BaseClient):

    def show_energy(self, **query):
        return self._call(self.get, 'energy', **query)

    def list_hosts(self):
        return self._call(self.get, 'energy/hosts')

    def show_report(self, **query):
        return self._call(self.get, 'energy/report', **query)

    def set_figures(self, host, **figures):
        return self._call(self.put, f'energy/hosts/{host}/figures',
                          body={'figures': figures})

    def delete_figures(self, host):
        return self._call(self.delete, f'energy/hosts/{host}/figures', 204)
