# SPDX-License-Identifier: Apache-2.0
"""Client of the energy API."""

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
