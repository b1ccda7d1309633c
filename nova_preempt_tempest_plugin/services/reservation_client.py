# SPDX-License-Identifier: Apache-2.0
"""Client of reservations and hosts that can be reserved."""

from nova_preempt_tempest_plugin.services import base


class ReservationClient(base.BaseClient):

    def create_reservation(self, **values):
        return self._call(self.post, 'reservations', 201,
                          body={'reservation': values})

    def preview_reservation(self, **values):
        return self._call(self.post, 'reservations/preview',
                          body={'reservation': values})

    def list_reservations(self, **query):
        return self._call(self.get, 'reservations', **query)

    def show_reservation(self, reservation_id):
        return self._call(self.get, f'reservations/{reservation_id}')

    def update_reservation(self, reservation_id, **values):
        return self._call(self.patch, f'reservations/{reservation_id}',
                          body={'reservation': values})

    def delete_reservation(self, reservation_id):
        return self._call(self.delete, f'reservations/{reservation_id}', 204)

    def list_hosts(self, **query):
        return self._call(self.get, 'hosts', **query)

    def update_host(self, name, **values):
        return self._call(self.patch, f'hosts/{name}', body={'host': values})

    def list_properties(self):
        return self._call(self.get, 'properties')

    def show_limits(self, project_id):
        return self._call(self.get, f'reservation-limits/{project_id}')

    def set_limits(self, project_id, **limits):
        return self._call(self.put, f'reservation-limits/{project_id}',
                          body={'reservation_limits': limits})

    def unset_limits(self, project_id):
        return self._call(self.delete, f'reservation-limits/{project_id}',
                          204)
