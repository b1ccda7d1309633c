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
"""Who has given way to whom lately."""

import dataclasses
import datetime

import sqlalchemy as sa

from nova_preempt.db import decisions
from nova_preempt.db import models

# The latest ones; more than that in a short time come round without a cycle.
MOST = 10_000


@dataclasses.dataclass(frozen=True)
class Turn:
    """A victim that has left its place, and for which server; '' for none."""

    ended_at: datetime.datetime
    decision_uuid: str
    victim_uuid: str
    victim_project: str
    server_uuid: str
    server_project: str


def get_turns(database, since):
    """The Turns after a time, naive and UTC, the latest MOST of them."""
    query = (sa.select(models.Victim.ended_at, models.Decision.uuid,
                       models.Victim.server_uuid, models.Victim.project_id,
                       models.Decision.server_uuid,
                       models.Decision.project_id)
             .join(models.Decision,
                   models.Decision.uuid == models.Victim.decision_uuid)
             .where(models.Victim.ended_at > since)
             .where(models.Victim.status.in_(
                 (*decisions.LEFT_PLACE, decisions.MIGRATED)))
             .order_by(models.Victim.ended_at.desc())
             .limit(MOST))
    with database.reader() as session:
        return [Turn(*row) for row in session.execute(query)]
