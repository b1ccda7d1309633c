# SPDX-License-Identifier: Apache-2.0
"""Check a MariaDB as root, and create or drop databases.

Usage: databases.py check|wait|create|drop HOST PORT NAME...
"""

import sys
import time

import pymysql

PASSWORD = 'secret'
CONNECTIONS = 500
#: A database for the original max_connections; names of clouds' databases
#: begin with its name.
MEMORY = 'minicloud'
PATIENCE_S = 60


def connect(host, port):
    return pymysql.connect(host=host, port=int(port), user='root',
                           connect_timeout=5)


def wait(host, port):
    """Wait until MariaDB answers."""
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
    # Some twenty processes have a pool for each of several databases; the
    # default of 151 connections is too low.
    if _max_connections(cursor) < CONNECTIONS:
        cursor.execute(f'CREATE DATABASE IF NOT EXISTS {MEMORY}')
        cursor.execute(f'CREATE OR REPLACE TABLE {MEMORY}.machine AS'
                       ' SELECT @@GLOBAL.max_connections AS max_connections')
        cursor.execute(f'SET GLOBAL max_connections = {CONNECTIONS}')
        print(f'max_connections is {CONNECTIONS} until the last cloud of this '
              'MariaDB is wiped')


def _max_connections(cursor):
    cursor.execute('SELECT @@GLOBAL.max_connections')
    return cursor.fetchone()[0]


def drop(cursor, names):
    for name in names:
        cursor.execute(f'DROP DATABASE IF EXISTS {name}')
        for host in ('%', 'localhost'):
            cursor.execute(f"DROP USER IF EXISTS '{name}'@'{host}'")
    _put_back(cursor)


def _put_back(cursor):
    """Restore max_connections after the last cloud was dropped."""
    cursor.execute('SHOW DATABASES')
    names = {name for name, in cursor.fetchall()}
    if MEMORY not in names or any(
            name.startswith(f'{MEMORY}_') for name in names):
        return
    cursor.execute(f'SELECT max_connections FROM {MEMORY}.machine')
    [(before,)] = cursor.fetchall()
    # NOTE: unless it was changed meanwhile, or MariaDB was restarted.
    if _max_connections(cursor) == CONNECTIONS:
        cursor.execute(f'SET GLOBAL max_connections = {before}')
    cursor.execute(f'DROP DATABASE {MEMORY}')


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
