# SPDX-License-Identifier: Apache-2.0
"""Each command also runs as python -m nova_preempt.cmd.X."""

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
