# SPDX-License-Identifier: Apache-2.0

"""Reads the configuration and builds the application."""

import os

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.api import authentication
from nova_preempt.api import middleware_pipeline
from nova_preempt.backlog import secret_encryption
from nova_preempt.cloud import boot_schema
from nova_preempt.cloud import nova_as_user
from nova_preempt.cloud import nova_conf
import nova_preempt.conf
from nova_preempt.conf import option_checks
from nova_preempt.db import connection
from nova_preempt.webhook import target_check

CONF = nova_conf.CONF

DIRECTORY = 'OS_NOVA_CONFIG_DIR'
FILES = 'OS_NOVA_CONFIG_FILES'

# Rules that nova-preempt-status checks on any host. authenticated()
# checks [keystone_authtoken], which hosts without the API do not need.
RULES = (connection.check_url, rpc.check_transport, secret_encryption.check,
         authentication.check_audit_map, target_check.load_rules)


def make_application(arguments=()):
    """Read the configuration and return the application.

    Connections are opened later, since a server may fork after this.

    :param arguments: of the command line
    :raises InvalidConfiguration: the configuration is missing or invalid
    """
    nova_preempt.conf.register_api_opts(CONF)
    nova_conf.read(CONF, ['nova-preempt-api', *arguments], configure_db=False,
                   init_rpc=False)
    option_checks.check(CONF, RULES)
    name_log(CONF)
    logging.setup(CONF, 'nova')
    load(CONF)
    return middleware_pipeline.make_app(CONF)


def name_log(conf):
    """Set the name of a log file in [DEFAULT]log_dir.

    By default oslo.log uses the name of the process's outermost file, which is
    '<frozen importlib._bootstrap>' under uWSGI.
    """
    if conf.log_dir:
        conf.set_default('log_file', 'nova-preempt-api.log')


def load(conf):
    """Load Nova's modules for boot requests, if the backlog is enabled.

    Loading takes seconds on a busy machine; forked workers share the modules.
    """
    if conf.backlog.enabled:
        boot_schema.load()
        nova_as_user.load()


def arguments(environ):
    """Return command line arguments from the environment of a WSGI server.

    The variables are those of nova-api, and so is the default directory
    /etc/nova.

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
                f'The configuration file {path} cannot be read; {DIRECTORY} '
                f'and {FILES} in the environment name it.')
    return [f'--config-file={path}' for path in paths]
