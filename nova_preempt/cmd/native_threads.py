# SPDX-License-Identifier: Apache-2.0
"""Makes a process use native threads instead of eventlet, when imported first.

Nova decides once per process: up to 2025.2 its API modules would make eventlet
patch the modules that are loaded by then.
"""

import logging
import os
import sys

if 'nova.monkey_patch' not in sys.modules:
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'true'

    from nova import monkey_patch

    # From 2025.2 on: oslo.service would assume eventlet at its first use, and
    # a later decision of Nova fail.
    if hasattr(monkey_patch, 'patch'):
        # Up to 2026.1 Nova warns that native threads are experimental.
        logging.getLogger('nova.monkey_patch').setLevel(logging.ERROR)
        monkey_patch.patch()
