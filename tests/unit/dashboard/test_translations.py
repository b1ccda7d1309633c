# SPDX-License-Identifier: Apache-2.0
"""Tests that translators get the texts of the dashboard.

Nothing else would show that "django-admin makemessages" misses one.
"""

import ast
import pathlib
import unittest

import nova_preempt_dashboard

#: The names of functions whose arguments it collects.
_KNOWN = {'_', 'gettext', 'gettext_lazy', 'gettext_noop', 'ngettext',
          'ngettext_lazy', 'pgettext', 'pgettext_lazy'}


class TestTranslations(unittest.TestCase):

    def test_functions_have_known_names(self):
        found = set()
        top = pathlib.Path(nova_preempt_dashboard.__file__).parent
        for path in top.rglob('*.py'):
            for node in ast.walk(ast.parse(path.read_text('utf-8'))):
                if isinstance(node, ast.ImportFrom) and (
                        node.module == 'django.utils.translation'):
                    found.update(each.asname or each.name
                                 for each in node.names)
        self.assertIn('_', found)
        self.assertLessEqual(found, _KNOWN)
