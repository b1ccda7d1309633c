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
"""The entry of WSGI servers: nova_preempt.api.wsgi:application.

nova.conf is found where Nova finds it, or named by OS_NOVA_CONFIG_FILES and
OS_NOVA_CONFIG_DIR as for nova-api.
"""

import os
import threading

from nova import config
import nova.conf
from oslo_log import log as logging

from nova_preempt.api import app
import nova_preempt.conf

CONF = nova.conf.CONF

_lock = threading.Lock()
_app = None


def make_application(arguments=()):
    """Read the configuration and return the application.

    :param arguments: of the command line
    """
    nova_preempt.conf.register_opts(CONF)
    config.parse_args(['nova-preempt-api', *arguments], configure_db=False,
                      init_rpc=False)
    logging.setup(CONF, 'nova')
    return app.make_app(CONF)


def application(environ, start_response):
    """Serve a request; the first one reads the configuration.

    Not the import: a server may fork after it, and connections do not like
    that.
    """
    global _app
    if _app is None:
        with _lock:
            if _app is None:
                _app = make_application(_arguments(os.environ))
    return _app(environ, start_response)


def _arguments(environ):
    directory = environ.get('OS_NOVA_CONFIG_DIR', '/etc/nova').strip()
    names = environ.get('OS_NOVA_CONFIG_FILES', '').split(';')
    return [f'--config-file={os.path.join(directory, name.strip())}'
            for name in names if name.strip()]
