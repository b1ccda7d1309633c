# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment: works on the connection that schema.sync() gives."""

from alembic import context

from nova_preempt.db import models

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.Base.metadata, render_as_batch=True)

with context.begin_transaction():
    context.run_migrations()
