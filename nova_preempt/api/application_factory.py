# SPDX-License-Identifier: Apache-2.0

"""From a process's environment and arguments to the application."""

import os

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.api import app
from nova_preempt.api import auth
from nova_preempt.backlog import secret_encryption
from nova_preempt.cloud import boot_schema
from nova_preempt.cloud import nova_as_user
from nova_preempt.cloud import nova_conf
import nova_preempt.conf
from nova_preempt.conf import values
from nova_preempt.db import connection

CONF = nova_conf.CONF

DIRECTORY = 'OS_NOVA_CONFIG_DIR'
FILES = 'OS_NOVA_CONFIG_FILES'

# How tokens are checked is not among them: a configuration without
# [keystone_authtoken] is right for hosts that run no API, and
# nova-preempt-status checks these rules on any. auth.authenticated() asks.
RULES = (connection.check_url, rpc.check_transport, secret_encryption.check,
         auth.check_audit_map)


def make_application(arguments=()):
    """Read the configuration and return the application.

    Nothing is connected yet: a server may fork after this.

    :param arguments: of the command line
    :raises InvalidConfiguration: there is none, or something is missing in it
    """
    nova_preempt.conf.register_api_opts(CONF)
    nova_conf.read(CONF, ['nova-preempt-api', *arguments], configure_db=False,
                   init_rpc=False)
    values.check(CONF, RULES)
    name_log(CONF)
    logging.setup(CONF, 'nova')
    load(CONF)
    return app.make_app(CONF)


def name_log(conf):
    """Have a log in a directory get our name.

    oslo.log takes that of the outermost file of the process, which is none of
    ours: '<frozen importlib._bootstrap>.log' under uWSGI.
    """
    if conf.log_dir:
        conf.set_default('log_file', 'nova-preempt-api.log')


def load(conf):
    """Load what the first request that is to wait would wait for.

    That takes seconds on a machine that is busy, and those who fork share it.
    Where there is no backlog nothing of it is loaded.
    """
    if conf.backlog.enabled:
        boot_schema.load()
        nova_as_user.load()


def arguments(environ):
    """What stands for a command line, for WSGI servers, which have none.

    The variables are those of nova-api; see there, too, that files are
    looked for in /etc/nova where only they are named.

    :raises InvalidConfiguration: there is no such file
    """
    names = [name.strip() for name in environ.get(FILES, '').split(';')]
    names = [name for name in names if name]
    directory = environ.get(DIRECTORY, '').strip()
    if not (names or directory):
        return []
    paths = [os.path.join(directory or '/etc/nova', name)
             for name in names or ['nova.conf']]
    for path in paths:
        if not os.access(path, os.R_OK):
            raise exceptions.InvalidConfiguration(
                f'{path}, where {DIRECTORY} and {FILES} say that the '
                'configuration is, cannot be read.')
    return [f'--config-file={path}' for path in paths]
