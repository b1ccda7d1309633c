# SPDX-License-Identifier: Apache-2.0
"""A real Nova and Placement in one process, for demo and tests."""

import importlib.metadata
import os

# Nova reads this at its first import, and only once. The fixtures of its
# functional tests, on which this stands, can do without eventlet from 2026.2
# on; of earlier releases they need it, and so it is the default there.
if int(importlib.metadata.version('nova').partition('.')[0]) >= 34:
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
