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

import dataclasses
import datetime

import sqlalchemy as sa

from nova_preempt.db import models
from nova_preempt.db import retries


@dataclasses.dataclass(frozen=True)
class Move:
    """That Nova was asked to move a server.

    :ivar node: from where
    :ivar asked_at: when it was asked last, naive and in UTC
    :ivar cold: whether it has to be told that the move is to stay
    """

    node: str
    asked_at: datetime.datetime
    cold: bool


class Moves:
    """What the database knows of them.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database

    def get(self):
        """{uuid of a server: its Move}."""
        row = models.ReservationMove
        with self._db.reader() as session:
            return {uuid: Move(node, asked_at, cold)
                    for uuid, node, asked_at, cold in session.execute(
                        sa.select(row.server_uuid, row.node, row.asked_at,
                                  row.cold))}

    @retries.retried
    def add(self, uuid, move):
        """Remember a Move in place of an earlier one of the server."""
        row = models.ReservationMove
        with self._db.writer() as session:
            session.execute(sa.delete(row).where(row.server_uuid == uuid))
            session.execute(sa.insert(row).values(
                server_uuid=uuid, **dataclasses.asdict(move)))

    @retries.retried
    def remove(self, uuid):
        """Forget the Move of a server."""
        row = models.ReservationMove
        with self._db.writer() as session:
            session.execute(sa.delete(row).where(row.server_uuid == uuid))
