# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment, on the connection of schema_upgrade.sync()."""

from alembic import context

from nova_preempt.db import models

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.Base.metadata, render_as_batch=True)

with context.begin_transaction():
    context.run_migrations()
