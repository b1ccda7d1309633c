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
"""MariaDB: where it is, and a private one."""

import getpass

from minicloud import layout as layouts
from minicloud import steps

SERVER = '/usr/sbin/mariadbd'


def _data(layout):
    return layout.data / 'mariadb'


def prepare(layout, env):
    """Make the files of a private server."""
    if not (_data(layout) / 'mysql').exists():
        steps.call(
            ['mariadb-install-db', '--no-defaults', '--skip-test-db',
             f'--user={getpass.getuser()}', f'--datadir={_data(layout)}',
             # root has no password, as everything here has a known one.
             '--auth-root-authentication-method=normal'],
            env, layout.logs / 'step-mariadb-files.log')


def command(layout):
    data = _data(layout)
    return (
        SERVER, '--no-defaults', f'--user={getpass.getuser()}',
        f'--datadir={data}', f'--bind-address={layouts.ADDRESS}',
        f'--port={layout.port("mariadb")}', f'--socket={data}/mariadb.sock',
        f'--pid-file={data}/mariadb.pid', '--max-connections=1000',
        # A crash of the machine may cost it a second; one of its own none.
        '--innodb-flush-log-at-trx-commit=2',
        '--innodb-buffer-pool-size=256M', '--skip-log-bin',
        '--character-set-server=utf8mb4')
