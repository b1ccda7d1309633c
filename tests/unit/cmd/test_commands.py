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
"""Every command runs as a module, too: python -m nova_preempt.cmd.X."""

import configparser
import importlib.util
import pathlib
import unittest

SETUP = pathlib.Path(__file__).parents[3] / 'setup.cfg'


class TestCommands(unittest.TestCase):

    def test_as_modules(self):
        setup = configparser.ConfigParser()
        setup.read(SETUP)
        commands = setup['entry_points']['console_scripts'].split('\n')
        self.assertGreater(len(commands), 5)
        for command in filter(None, commands):
            name, _, module = command.partition(' = ')
            module, _, function = module.partition(':')
            with self.subTest(name):
                path = importlib.util.find_spec(module).origin
                self.assertTrue(pathlib.Path(path).read_text().endswith(
                    f"\n\nif __name__ == '__main__':\n"
                    f'    sys.exit({function}())\n'))
