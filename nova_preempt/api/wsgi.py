# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
