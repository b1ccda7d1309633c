# SPDX-License-Identifier: Apache-2.0
"""The database of nova_preempt."""

# Registers all models, whichever module is imported.
from nova_preempt.db import backlog_models  # noqa: F401 (see above)
from nova_preempt.db.connection import Database
from nova_preempt.db.decisions import Decisions
from nova_preempt.db.row_schemas import Decision
from nova_preempt.db.row_schemas import Victim

__all__ = ('Database', 'Decision', 'Decisions', 'Victim')
