# SPDX-License-Identifier: Apache-2.0
"""The tempest plugin, as far as it can be looked at without tempest."""

import ast
import configparser
import pathlib
import re
import unittest
import uuid

ROOT = pathlib.Path(__file__).parents[2]
PLUGIN = ROOT / 'nova_preempt_tempest_plugin'


def tests():
    """{name: ast.FunctionDef} of all tests."""
    return {f'{path.name}:{node.name}': node
            for path in PLUGIN.glob('*/test_*.py')
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith('test_')}


def ids_of(test):
    return [decorator.args[0].value for decorator in test.decorator_list
            if getattr(decorator.func, 'attr', '') == 'idempotent_id']


def asserts(node):
    """Return whether a test asserts something, even if a list is empty."""
    if isinstance(node, ast.For) and not isinstance(node.iter, ast.Tuple):
        return False
    if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and re.match('assert|wait_for$', node.func.attr)):
        return True
    return any(map(asserts, ast.iter_child_nodes(node)))


class TestPlugin(unittest.TestCase):

    def test_each_test_has_an_id_of_its_own(self):
        found = {name: ids_of(test) for name, test in tests().items()}
        self.assertGreater(len(found), 20)
        self.assertEqual({}, {name: ids for name, ids in found.items()
                              if len(ids) != 1})
        ids = [one for one, in found.values()]
        self.assertEqual(len(set(ids)), len(ids))
        for one in ids:
            self.assertEqual(one, str(uuid.UUID(one)))

    def test_each_test_looks_at_something(self):
        self.assertEqual([], [name for name, test in tests().items()
                              if not any(map(asserts, test.body))])

    def test_the_entry_point_is_there(self):
        setup = configparser.RawConfigParser()
        setup.read(ROOT / 'setup.cfg')
        module, name = re.search(r'= (\S+):(\S+)', setup.get(
            'entry_points', 'tempest.test_plugins')).groups()
        self.assertIn(module.partition('.')[0],
                      setup.get('files', 'packages').split('\n'))
        path = ROOT / f'{module.replace(".", "/")}.py'
        self.assertIn(f'class {name}(', path.read_text())

    def test_nothing_of_ours_is_imported(self):
        """The plugin is installed beside tempest, without us."""
        for path in PLUGIN.rglob('*.py'):
            self.assertNotRegex(path.read_text(),
                                r'(?:from|import) nova_preempt\b')

    def test_the_link_in_tests_exists(self):
        self.assertEqual(PLUGIN, (ROOT / 'tests' / 'tempest').resolve())
