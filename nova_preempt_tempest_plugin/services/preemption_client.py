# SPDX-License-Identifier: Apache-2.0
"""Client of preemptions, explanations, and pauses."""

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
