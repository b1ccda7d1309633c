# SPDX-License-Identifier: Apache-2.0
"""Whoever imports this first works with threads, whatever Nova's services do.

Nova settles it once for a process, when it is first asked: up to 2025.2 what
belongs to its API asks, and would have eventlet patch what is loaded by then.
"""

import logging
import os
import sys

if 'nova.monkey_patch' not in sys.modules:
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'true'

    from nova import monkey_patch

    # From 2025.2 on: oslo.service would assume eventlet as soon as it is used,
    # and Nova fail when it is asked after that.
    if hasattr(monkey_patch, 'patch'):
        # Up to 2026.1 it warns that this is new for Nova's services.
        logging.getLogger('nova.monkey_patch').setLevel(logging.ERROR)
        monkey_patch.patch()
