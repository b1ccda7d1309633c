# SPDX-License-Identifier: Apache-2.0
"""Stores migrations away from reserved hosts that Nova was asked for."""

import sqlalchemy as sa

from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

Move = row_schemas.Move


class ReservationMoves:
    """Store of requested migrations.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database

    def get(self):
        """Return {uuid of a server: its Move}."""
        row = models.ReservationMove
        return {uuid: Move(*values) for uuid, *values in self._db.read(
            row_schemas.select(row, Move, 'server_uuid'))}

    @transaction_retries.retried_upsert
    def add(self, uuid, move):
        """Store the Move of a server, replacing an earlier one."""
        with self._db.writer() as session:
            row_schemas.upsert(session, models.ReservationMove,
                               {'server_uuid': uuid}, row_schemas.values(move))

    @transaction_retries.retried
    def remove(self, uuid):
        """Delete the Move of a server."""
        row = models.ReservationMove
        self._db.write(sa.delete(row).where(row.server_uuid == uuid))
