# SPDX-License-Identifier: Apache-2.0
"""Turns of projects for which the backlog keeps hosts free."""

import sqlalchemy as sa

from nova_preempt.core.backlog import turns
from nova_preempt.db import backlog_models
from nova_preempt.db import retries
from nova_preempt.db import rows

_TURN = backlog_models.BacklogTurn


def get(database):
    """{project_id: core.backlog.turns.Turn}."""
    return {project: turns.Turn(*values) for project, *values in database.read(
        sa.select(_TURN.project_id, *rows.columns(_TURN, turns.Turn)))}


@retries.retried_upsert
def replace(database, before, after):
    """Write down what a pass has changed.

    :param before: what get() returned
    :param after: the same of now
    """
    changed = {project: turn for project, turn in sorted(after.items())
               if turn != before.get(project)}
    gone = sorted(before.keys() - after.keys())
    if not changed and not gone:
        return
    with database.writer() as session:
        for project in gone:
            session.execute(sa.delete(_TURN).where(
                _TURN.project_id == project))
        for project, turn in changed.items():
            rows.upsert(session, _TURN, {'project_id': project},
                        rows.values(turn))
