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

"""[preemption_database]: where decisions and intents are kept."""

import copy

from oslo_db import options as db_options

GROUP = 'preemption_database'

DEFAULT_CONNECTION = 'sqlite:///$state_path/nova_preempt.sqlite'


def list_opts():
    """oslo.db's own options, with a default that needs no server."""
    opts = copy.deepcopy(db_options.database_opts)
    for opt in opts:
        if opt.name == 'connection':
            opt.default = DEFAULT_CONNECTION
            opt.help = """
The database of nova_preempt: intents, decision records, and the servers that
were made preemptible by a scheduler hint.

The default, a SQLite file under ``[DEFAULT]state_path``, is made at the first
start and serves one scheduler host. Where several hosts run
``nova-preempt-scheduler``, all of them must name the same MariaDB, MySQL or
PostgreSQL database, whose tables ``nova-preempt-manage db sync`` makes:
what a scheduler leaves behind in a crash is then repaired by another.
"""
    return opts


def register_opts(conf):
    conf.register_opts(list_opts(), group=GROUP)
