# SPDX-License-Identifier: Apache-2.0
"""The manager of nova-preempt-scheduler.

Nova imports it by its name, once the configuration has been read: how often
the periodic tasks run is settled with the import.
"""

from nova_preempt import garbage_collection
from nova_preempt.scheduler import manager


class Manager(manager.PreemptibleSchedulerManager):
    """That of a process which is a scheduler and nothing else."""

    def post_start_hook(self):
        super().post_start_hook()
        garbage_collection.settle()
