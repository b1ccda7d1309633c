# SPDX-License-Identifier: Apache-2.0

"""Tests of libraries that packages may import, beyond import-linter."""

import ast
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2] / 'nova_preempt'

DASHBOARD = ROOT.with_name('nova_preempt_dashboard')

#: Modules of it that "make test" can import.
NO_DJANGO = ('__init__.py', 'api.py', 'host_kinds.py', 'notices.py',
             'paging.py', 'periods.py', 'timeline.py')

#: The rooms that talk to Nova, and what nova-api itself loads.
NOVA = ('cloud', 'cmd', 'embedded', 'scheduler', 'extra_spec_validators.py')

#: What modules of the core import beside it and the standard library.
CORE = {
    'batch': {'numpy', 'scipy'},
    'classes/class_order.py': {'numpy'},
    'classes/promethee.py': {'numpy'},
}


def imports(path):
    """The names of the modules that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def is_in(path, places):
    """Return whether a path is one of these places, or within one."""
    return any(path.is_relative_to(place) for place in places)


class TestImports(unittest.TestCase):

    def found(self, room=''):
        """Yield (path within the room, name of a module that it imports)."""
        for path in sorted((ROOT / room).rglob('*.py')):
            for name in imports(path):
                yield path.relative_to(ROOT / room), name

    def test_one_room_talks_to_nova(self):
        self.assertEqual([], [
            f'{path}: {name}' for path, name in self.found()
            if name.partition('.')[0] == 'nova' and not is_in(path, NOVA)])

    def test_the_core_imports_itself_and_the_standard_library(self):
        self.assertEqual([], [
            f'{path}: {name}' for path, name in self.found('core')
            if not f'{name}.'.startswith('nova_preempt.core.')
            and name.partition('.')[0] not in sys.stdlib_module_names
            and not any(name.partition('.')[0] in libraries
                        for place, libraries in CORE.items()
                        if is_in(path, [place]))])

    def test_the_dashboard_imports_the_sdk_and_one_rule(self):
        self.assertEqual(
            {('client.py', 'from nova_preempt import sdk'),
             # Which flavors are preemptible.
             ('notices.py',
              'from nova_preempt.cloud import extra_specs as specs')},
            {(path.name, ast.unparse(node))
             for path in DASHBOARD.rglob('*.py')
             for node in ast.walk(ast.parse(path.read_text(encoding='utf-8')))
             if isinstance(node, (ast.Import, ast.ImportFrom))
             and re.search(r'\bnova_preempt\b', ast.unparse(node))})

    def test_the_dashboard_runs_where_nova_is_not_installed(self):
        subprocess.run([sys.executable, '-W', 'ignore', '-c', (
            'import sys; sys.modules.update(nova=None, oslo_db=None); '
            'import nova_preempt.sdk, nova_preempt.cloud.extra_specs')],
            check=True, cwd=ROOT.parent)

    def test_parts_of_the_dashboard_need_no_django(self):
        for name in NO_DJANGO:
            with self.subTest(name=name):
                self.assertEqual(set(), {'django', 'horizon'} & {
                    each.partition('.')[0]
                    for each in imports(DASHBOARD / name)})


if __name__ == '__main__':
    unittest.main()
