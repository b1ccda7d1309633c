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
"""A whole OpenStack compute cloud in one process, for demo and tests."""

import importlib.metadata
import os

# Nova reads this at its first import, and only once. The fixtures of its
# functional tests, on which this stands, can do without eventlet from 2026.2
# on; of earlier releases they need it, and so it is the default there.
if int(importlib.metadata.version('nova').partition('.')[0]) >= 34:
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
