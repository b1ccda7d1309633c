# SPDX-License-Identifier: Apache-2.0
"""Reads and replaces encrypted secrets of webhooks."""

import sqlalchemy as sa

from nova_preempt.db import models
from nova_preempt.db import transaction_retries

_HOOK = models.Webhook


def each(database):
    """Return [(project id, secret)] of all webhooks."""
    return database.read(sa.select(_HOOK.project_id, _HOOK.sealed).order_by(
        _HOOK.project_id))


@transaction_retries.retried
def replace(database, project_id, old, new):
    """Replace a secret by the re-encrypted secret, unless it has changed."""
    database.write(sa.update(_HOOK).where(
        _HOOK.project_id == project_id, _HOOK.sealed == old).values(
            sealed=new))
