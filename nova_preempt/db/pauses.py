# SPDX-License-Identifier: Apache-2.0
"""Stores pauses that operators have set.

Schedulers and engines read them before they act, so a row stops all processes
at once. The API and a command write them.
"""

import sqlalchemy as sa

from nova_preempt.db import database_clock
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

PREEMPTION = 'preemption'
RESERVATIONS = 'reservations'
POWER = 'power'
BACKLOG = 'backlog'
#: What can be paused.
ALL = (PREEMPTION, RESERVATIONS, POWER, BACKLOG)

Pause = row_schemas.Pause


@transaction_retries.retried_upsert
def pause(database, what, reason, **asked_by):
    """Pause a subsystem.

    A subsystem that is paused already keeps its start and gets the new reason.

    :param what: one of ALL
    :param asked_by: user_id, project_id and request_id
    """
    values = {'reason': reason, **asked_by}
    with database.writer() as session:
        if not session.execute(sa.update(models.Pause).where(
                models.Pause.what == what).values(**values)).rowcount:
            session.execute(sa.insert(models.Pause).values(
                what=what, since=database_clock.now(), **values))


@transaction_retries.retried
def resume(database, what):
    """Resume a subsystem; return whether it was paused."""
    return database.write(sa.delete(models.Pause).where(
        models.Pause.what == what)) == 1


@transaction_retries.retried
def get(database):
    """Return {one of ALL: Pause} of paused subsystems, in this order."""
    found = {row.what: Pause(*row) for row in database.read(
        row_schemas.select(models.Pause, Pause))}
    return {what: found[what] for what in ALL if what in found}
