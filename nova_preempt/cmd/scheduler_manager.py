# SPDX-License-Identifier: Apache-2.0
"""Manager of nova-preempt-scheduler.

Nova imports it by name after reading the configuration: the import fixes the
intervals of the periodic tasks.
"""

from nova_preempt import garbage_collection
from nova_preempt.scheduler import manager


class Manager(manager.PreemptibleSchedulerManager):
    """Scheduler manager that tunes garbage collection of its own process."""

    def post_start_hook(self):
        super().post_start_hook()
        garbage_collection.settle()
