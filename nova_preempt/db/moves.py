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
"""The moves away from reserved hosts that Nova was asked for."""

import sqlalchemy as sa

from nova_preempt.db import models
from nova_preempt.db import retries
from nova_preempt.db import rows

Move = rows.Move


class Moves:
    """What the database knows of them.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database

    def get(self):
        """{uuid of a server: its Move}."""
        row = models.ReservationMove
        return {uuid: Move(*values) for uuid, *values in self._db.read(
            sa.select(row.server_uuid, *rows.columns(row, Move)))}

    @retries.retried_upsert
    def add(self, uuid, move):
        """Remember a Move in place of an earlier one of the server."""
        with self._db.writer() as session:
            rows.upsert(session, models.ReservationMove,
                        {'server_uuid': uuid}, rows.values(move))

    @retries.retried
    def remove(self, uuid):
        """Forget the Move of a server."""
        row = models.ReservationMove
        self._db.write(sa.delete(row).where(row.server_uuid == uuid))
