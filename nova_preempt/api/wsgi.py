# SPDX-License-Identifier: Apache-2.0

"""The entry of WSGI servers: nova_preempt.api.wsgi:application.

nova.conf is found where Nova finds it, or named by OS_NOVA_CONFIG_DIR and
OS_NOVA_CONFIG_FILES as for nova-api. It is read with the import, so that a
server whose configuration lacks something does not start.
"""

import os

from nova_preempt import garbage
from nova_preempt.api import entry

application = entry.make_application(entry.arguments(os.environ))
garbage.settle()
