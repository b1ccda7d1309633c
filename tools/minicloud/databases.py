# SPDX-License-Identifier: Apache-2.0
"""MariaDB: the machine's server, or a private one."""

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
             # NOTE: root without a password: all passwords are known here.
             '--auth-root-authentication-method=normal'],
            env, layout.logs / 'step-mariadb-files.log')


def command(layout):
    data = _data(layout)
    return (
        SERVER, '--no-defaults', f'--user={getpass.getuser()}',
        f'--datadir={data}', f'--bind-address={layouts.ADDRESS}',
        f'--port={layout.port("mariadb")}', f'--socket={data}/mariadb.sock',
        f'--pid-file={data}/mariadb.pid', '--max-connections=1000',
        # NOTE: only a crash of the machine may lose a second of data.
        '--innodb-flush-log-at-trx-commit=2',
        '--innodb-buffer-pool-size=256M', '--skip-log-bin',
        '--character-set-server=utf8mb4')
