# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""nova-preempt-scheduler: nova-scheduler with a manager that preempts.

Takes the place of nova-scheduler: the same service name in Nova's service
table, the same RPC topic, the same nova.conf and arguments.
"""

# First, since it prepares the process for threads (or, up to 2025.2,
# eventlet) before anything else is imported.
from nova.cmd import scheduler  # isort: skip

import sys

from nova import service

MANAGER = 'nova_preempt.cmd.scheduler_manager.Manager'


def main():
    # Nova names its managers in a table; nova-scheduler creates its service
    # by the binary's name, which stays nova-scheduler.
    service.SERVICE_MANAGERS['nova-scheduler'] = MANAGER
    return scheduler.main()


if __name__ == '__main__':
    sys.exit(main())
