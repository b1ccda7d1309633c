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
"""Whether an owner is alive."""

import os
import subprocess
import sys
import tempfile
import unittest

from nova_preempt.termination import owner

CHILD = """
import sys
from nova_preempt.termination import owner
me = owner.Owner('host1', sys.argv[1])
print(me.name, flush=True)
sys.stdin.read()
"""


class TestOwner(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = os.path.join(directory.name, 'owners')

    def make(self, host='host1'):
        made = owner.Owner(host, self.directory)
        self.addCleanup(made.close)
        return made

    def test_alive_in_the_same_process(self):
        first, second = self.make(), self.make()
        self.assertNotEqual(first.name, second.name)
        self.assertFalse(first.is_dead(second.name))
        self.assertFalse(second.is_dead(first.name))
        self.assertFalse(first.is_dead(first.name))

    def test_dead_once_killed(self):
        with subprocess.Popen(
                [sys.executable, '-c', CHILD, self.directory],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as child:
            name = child.stdout.readline().strip()
            me = self.make()
            self.assertFalse(me.is_dead(name))
            child.kill()
            child.wait()
            self.assertTrue(me.is_dead(name))
        # The next one that starts removes its file.
        self.make()
        self.assertTrue(me.is_dead(name))
        self.assertEqual(2, len(os.listdir(self.directory)))

    def test_of_other_hosts_nothing_is_known(self):
        self.assertFalse(self.make().is_dead('host2/x'))
        self.assertFalse(self.make().is_dead('host1/x/y'))
        self.assertTrue(self.make().is_dead('host1/x'))

    def test_host_name_with_a_slash(self):
        first, second = self.make('a/b'), self.make('a/b')
        self.assertFalse(first.is_dead(second.name))
        self.assertTrue(first.is_dead('a/b/x'))
