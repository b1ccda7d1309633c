# SPDX-License-Identifier: Apache-2.0

"""The entry of WSGI servers: nova_preempt.api.wsgi:application.

nova.conf is found where Nova finds it, or named by OS_NOVA_CONFIG_DIR and
OS_NOVA_CONFIG_FILES as for nova-api. It is read with the import, so that a
server whose configuration lacks something does not start.
"""

import os

from nova_preempt import garbage_collection
from nova_preempt.api import application_factory

application = application_factory.make_application(
    application_factory.arguments(os.environ))
garbage_collection.settle()
