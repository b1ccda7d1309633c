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
"""Requests that have waited for hosts to wake, and how long it was worth it.

The delay that saving energy causes is told in parts of how long a server ran,
so its end has to be seen.
"""

from nova_preempt.cloud import instances
from nova_preempt.db import energy as db_energy


class BootDelays:
    """Looks whether servers that were waited for have ended.

    :param database: a db.Database
    :param get_cells: returns {uuid: CellMapping} to look for servers in
    """

    def __init__(self, database, get_cells):
        self._db = database
        self._get_cells = get_cells

    def close_ended(self):
        """Write how long each server ran that is gone."""
        for uuid in {wake.server_uuid for wake
                     in db_energy.get_wakes(self._db)
                     if wake.duration_s is None}:
            duration_s = self._duration_s(uuid)
            if duration_s is not None:
                db_energy.set_duration(self._db, uuid, duration_s)

    def _duration_s(self, uuid):
        """None while it is there, 0 if nothing is known of it any more."""
        for cell in list(self._get_cells().values()):
            server = instances.read_cell(cell, [uuid], deleted=True).get(uuid)
            if server is None:
                continue
            if not server.deleted:
                return None
            if server.launched_at and server.ended_at:
                return (server.ended_at - server.launched_at).total_seconds()
            return 0.0
        return 0.0
