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
