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
"""Ask a MariaDB as root, and make or drop databases.

Usage: databases.py check|wait|create|drop HOST PORT NAME...
"""

import sys
import time

import pymysql

PASSWORD = 'secret'
CONNECTIONS = 500
PATIENCE_S = 60


def connect(host, port):
    return pymysql.connect(host=host, port=int(port), user='root',
                           connect_timeout=5)


def wait(host, port):
    """Until it answers."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            connect(host, port).close()
        except pymysql.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def create(cursor, names):
    for name in names:
        charset = 'utf8mb4' if name.endswith('nova_preempt') else 'utf8mb3'
        cursor.execute(f'CREATE DATABASE IF NOT EXISTS {name}'
                       f' CHARACTER SET {charset}')
        for host in ('%', 'localhost'):
            user = f"'{name}'@'{host}'"
            cursor.execute(f'CREATE USER IF NOT EXISTS {user}'
                           f" IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f'GRANT ALL PRIVILEGES ON {name}.* TO {user}')
    # Some twenty processes with a pool for each of several databases; the
    # default of 151 is for less. Until the server starts anew.
    cursor.execute('SELECT @@GLOBAL.max_connections')
    if cursor.fetchone()[0] < CONNECTIONS:
        cursor.execute(f'SET GLOBAL max_connections = {CONNECTIONS}')
        print(f'max_connections is {CONNECTIONS} until MariaDB starts anew')


def drop(cursor, names):
    for name in names:
        cursor.execute(f'DROP DATABASE IF EXISTS {name}')
        for host in ('%', 'localhost'):
            cursor.execute(f"DROP USER IF EXISTS '{name}'@'{host}'")


def main():
    command, host, port, *names = sys.argv[1:]
    if command == 'wait':
        wait(host, port)
    if command in ('check', 'wait'):
        connect(host, port).close()
        return
    with connect(host, port) as connection, connection.cursor() as cursor:
        {'create': create, 'drop': drop}[command](cursor, names)


if __name__ == '__main__':
    main()
