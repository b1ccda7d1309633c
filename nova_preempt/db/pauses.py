# SPDX-License-Identifier: Apache-2.0
"""Pauses set by operators, with who asked for each.

Schedulers and engines look here before they act, so a row stops all of them
at once, whichever of the API and a command wrote it.
"""

import sqlalchemy as sa

from nova_preempt.db import database_clock
from nova_preempt.db import models
from nova_preempt.db import rows
from nova_preempt.db import transaction_retries

PREEMPTION = 'preemption'
RESERVATIONS = 'reservations'
POWER = 'power'
BACKLOG = 'backlog'
#: What can be paused.
ALL = (PREEMPTION, RESERVATIONS, POWER, BACKLOG)

Pause = rows.Pause


@transaction_retries.retried_upsert
def pause(database, what, reason, **asked_by):
    """Stop this.

    One that is stopped already stays so since then; the reason is the new
    one.

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
    """Go on with this. Returns whether it was paused."""
    return database.write(sa.delete(models.Pause).where(
        models.Pause.what == what)) == 1


@transaction_retries.retried
def get(database):
    """{one of ALL: Pause} of what is paused, in this order."""
    found = {row.what: Pause(*row) for row in database.read(sa.select(
        *rows.columns(models.Pause, Pause)))}
    return {what: found[what] for what in ALL if what in found}
