# SPDX-License-Identifier: Apache-2.0
"""Turns of projects for which the backlog keeps hosts free."""

import sqlalchemy as sa

from nova_preempt.core.backlog import project_turns
from nova_preempt.db import backlog_models
from nova_preempt.db import rows
from nova_preempt.db import transaction_retries

_TURN = backlog_models.BacklogTurn


def get(database):
    """{project_id: core.backlog.project_turns.Turn}."""
    return {project: project_turns.Turn(*values) for project,
            *values in database.read(
                sa.select(_TURN.project_id,
                          *rows.columns(_TURN, project_turns.Turn)))}


@transaction_retries.retried_upsert
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
