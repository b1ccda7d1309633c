# SPDX-License-Identifier: Apache-2.0

"""Tests of bodies of POST /servers that each release of Nova accepts."""

import subprocess
import sys
import unittest

from nova_preempt.cloud import boot_schema

IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'
#: What eventlet has patched by the time that a body was checked.
ASK = '''
from nova_preempt.cloud import boot_schema
boot_schema.check({'server': {
    'name': 'a', 'flavorRef': '1', 'imageRef': 'IMAGE', 'networks': 'none'}},
    '2.94')
try:
    from eventlet import patcher
    print(patcher.already_patched)
except ImportError:
    print({})
'''.replace('IMAGE', IMAGE)


def body(**server):
    values = {'name': 'a', 'flavorRef': '1', 'imageRef': IMAGE,
              'networks': 'none', **server}
    return {'server': {name: value for name, value in values.items()
                       if value is not None}}


class TestBootSchema(unittest.TestCase):

    def refused(self, version='2.94', **server):
        try:
            boot_schema.check(body(**server), version)
        except boot_schema.InvalidBody as exc:
            return str(exc)
        return ''

    def test_by_version(self):
        for version, server, text in (
                ('2.94', {}, ''), ('2.52', {}, ''),
                ('2.89', {'hostname': 'ab'}, "'hostname' was unexpected"),
                ('2.90', {'hostname': 'ab'}, ''),
                ('2.90', {'hostname': 'a.b'}, 'hostname'),
                ('2.94', {'hostname': 'a.b'}, ''),
                ('2.73', {'host': 'a'}, "'host' was unexpected"),
                ('2.74', {'host': 'a'}, ''),
                ('2.66', {'networks': None}, "'networks' is a required"),
                ('2.56', {'personality': []}, ''),
                ('2.57', {'personality': []}, "'personality' was"),
                # Later ones have none of their own.
                ('2.100', {'hostname': 'a.b'}, '')):
            found = self.refused(version, **server)
            self.assertIn(text, found)
            self.assertEqual(bool(text), bool(found), (version, server))

    def test_hints(self):
        boot_schema.check({**body(), 'os:scheduler_hints': {'x': 'y'}},
                          '2.94')
        with self.assertRaises(boot_schema.InvalidBody):
            boot_schema.check({**body(), 'nonsense': {}}, '2.94')

    def test_no_value_is_quoted(self):
        for server, path, text in (
                ({'user_data': '\nhunter2'}, '.server.user_data',
                 "it is not a 'base64'"),
                ({'user_data': 'hunter2' * 9400}, '.server.user_data',
                 'it is too long'),
                ({'user_data': ['hunter2']}, '.server.user_data',
                 'it is not of type'),
                ({'adminPass': {'hunter2': 1}}, '.server.adminPass',
                 "it is not of type 'string'"),
                ({'metadata': {'a': 'hunter2' * 50}}, '.server.metadata.a',
                 'it is too long'),
                ({'networks': 'hunter2'}, '.server.networks', 'it'),
                ({'nonsense': 'hunter2', 'user_data': 'hunter2'}, '.server',
                 "'nonsense' was unexpected")):
            with self.assertRaises(boot_schema.InvalidBody) as caught:
                boot_schema.check(body(**server), '2.94')
            self.assertEqual(path, caught.exception.path)
            self.assertIn(text, caught.exception.text)
            self.assertNotIn('hunter2', str(caught.exception))
            self.assertLess(len(str(caught.exception)), 400)

    def test_versions(self):
        newest = '.'.join(map(str, boot_schema.newest_version()))
        for version in (boot_schema.OLDEST, boot_schema.DEFAULT, newest):
            self.assertEqual('', boot_schema.check_version(version))
        for version in ('2.1', '2.51', '2.999', '3.1', 'latest', '2.060',
                        '2', '', '2.90\n', '2.٩٠'):
            self.assertIn('must be a microversion of Nova from',
                          boot_schema.check_version(version))

    def test_eventlet_does_not_patch_the_process(self):
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', ASK], text=True,
            capture_output=True, check=True)
        self.assertEqual('{}\n', done.stdout, done.stderr)


if __name__ == '__main__':
    unittest.main()
