# SPDX-License-Identifier: Apache-2.0
"""Tests of changes to a MariaDB that others use."""

import contextlib
import io
import re
import unittest

from minicloud.inside import databases


class Server:
    """Stands for a MariaDB, its connection and its cursor."""

    def __init__(self, max_connections):
        self.max_connections = max_connections
        self.databases = {'mysql'}
        self.remembered = None
        self._answer = ()

    def execute(self, statement):
        if found := re.match('CREATE DATABASE IF NOT EXISTS (\\w+)',
                             statement):
            self.databases.add(found[1])
        elif found := re.match('DROP DATABASE (?:IF EXISTS )?(\\w+)$',
                               statement):
            self.databases.discard(found[1])
        elif statement.startswith('CREATE OR REPLACE TABLE minicloud.machin'):
            self.remembered = self.max_connections
        elif found := re.match('SET GLOBAL max_connections = (\\d+)$',
                               statement):
            self.max_connections = int(found[1])
        elif statement == 'SELECT @@GLOBAL.max_connections':
            self._answer = [(self.max_connections,)]
        elif statement == 'SELECT max_connections FROM minicloud.machine':
            self._answer = [(self.remembered,)]
        elif statement == 'SHOW DATABASES':
            self._answer = [(name,) for name in self.databases]
        elif not re.match('(CREATE|DROP) USER|GRANT ', statement):
            raise AssertionError(statement)

    def fetchone(self):
        return self._answer[0]

    def fetchall(self):
        return self._answer


class TestConnections(unittest.TestCase):

    def create(self, server, *names):
        with contextlib.redirect_stdout(io.StringIO()):
            databases.create(server, names)

    def test_the_last_cloud_puts_them_back(self):
        server = Server(151)
        self.create(server, 'minicloud_20000_nova')
        self.create(server, 'minicloud_21000_nova')
        self.assertEqual(databases.CONNECTIONS, server.max_connections)
        databases.drop(server, ['minicloud_20000_nova'])
        self.assertEqual(databases.CONNECTIONS, server.max_connections)
        databases.drop(server, ['minicloud_21000_nova'])
        self.assertEqual(151, server.max_connections)
        self.assertEqual({'mysql'}, server.databases)

    def test_after_a_start_of_mariadb(self):
        server = Server(151)
        self.create(server, 'minicloud_1_nova')
        server.max_connections = 151
        self.create(server, 'minicloud_1_nova')
        databases.drop(server, ['minicloud_1_nova'])
        self.assertEqual(151, server.max_connections)

    def test_a_value_set_by_others_stays(self):
        server = Server(151)
        self.create(server, 'minicloud_1_nova')
        server.max_connections = 2000
        databases.drop(server, ['minicloud_1_nova'])
        self.assertEqual(2000, server.max_connections)

    def test_enough_of_them_stay_as_they_are(self):
        server = Server(1000)
        self.create(server, 'minicloud_1_nova')
        self.assertEqual(1000, server.max_connections)
        databases.drop(server, ['minicloud_1_nova'])
        self.assertEqual((1000, {'mysql'}),
                         (server.max_connections, server.databases))
