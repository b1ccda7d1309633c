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
"""What an operator has stopped for now, and who asked for it.

Schedulers and engines look here before they act, so a row stops all of them
at once, whichever of the API and a command wrote it.
"""

import dataclasses
import datetime

import sqlalchemy as sa

from nova_preempt.db import clock
from nova_preempt.db import models
from nova_preempt.db import retries

PREEMPTION = 'preemption'
RESERVATIONS = 'reservations'
POWER = 'power'
BACKLOG = 'backlog'
#: What can be paused.
ALL = (PREEMPTION, RESERVATIONS, POWER, BACKLOG)

_PAUSES = models.Pause.__table__


@dataclasses.dataclass(frozen=True)
class Pause:
    """since is naive and in UTC."""

    what: str
    since: datetime.datetime
    reason: str
    user_id: str = ''
    project_id: str = ''
    request_id: str = ''


@retries.retried_upsert
def pause(database, what, reason, **asked_by):
    """Stop this.

    One that is stopped already stays so since then; the reason is the new
    one.

    :param what: one of ALL
    :param asked_by: user_id, project_id and request_id
    """
    values = {'reason': reason, **asked_by}
    row = models.Pause
    with database.writer() as session:
        found = session.execute(sa.update(_PAUSES).where(
            row.what == what).values(**values)).rowcount
        if not found:
            session.execute(sa.insert(_PAUSES).values(
                what=what, since=clock.now(),
                **{'user_id': '', 'project_id': '', 'request_id': '',
                   **values}))


@retries.retried
def resume(database, what):
    """Go on with this. Returns whether it was paused."""
    with database.writer() as session:
        return session.execute(sa.delete(_PAUSES).where(
            models.Pause.what == what)).rowcount == 1


@retries.retried
def get(database):
    """{one of ALL: Pause} of what is paused, in this order."""
    columns = [getattr(models.Pause, field.name)
               for field in dataclasses.fields(Pause)]
    with database.reader() as session:
        found = {row.what: Pause(*row)
                 for row in session.execute(sa.select(*columns))}
    return {what: found[what] for what in ALL if what in found}
