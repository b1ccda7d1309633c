# SPDX-License-Identifier: Apache-2.0

"""Options of [preemption_database]."""

import copy

from oslo_db import options as db_options

GROUP = 'preemption_database'

DEFAULT_CONNECTION = 'sqlite:///$state_path/nova_preempt.sqlite'


def list_opts():
    """Return oslo.db's options, with a default that needs no server."""
    opts = copy.deepcopy(db_options.database_opts)
    for opt in opts:
        if opt.name == 'connection':
            opt.default = DEFAULT_CONNECTION
            opt.help = """
URL of the database of nova_preempt.

The default, a SQLite file under ``[DEFAULT]state_path``, is created at the
first start and serves one scheduler host. If several hosts run
``nova-preempt-scheduler``, set the same MariaDB, MySQL or PostgreSQL database
for all, and create its tables by ``nova-preempt-manage db sync``. If a
scheduler crashes, another one then finishes or rolls back its preemptions.
"""
    return opts


def register_opts(conf):
    conf.register_opts(list_opts(), group=GROUP)
