# SPDX-License-Identifier: Apache-2.0
"""The directive "log-lines": a table of what our code logs, by package."""

import ast
import itertools
import pathlib
import re

from docutils import statemachine
from sphinx.util import docutils
import yaml

TOP = pathlib.Path(__file__).parents[2]
CODE = TOP / 'nova_preempt'
MEANINGS = TOP / 'doc' / 'log-lines.yaml'
_LEVELS = {'warning': 'WARNING', 'error': 'ERROR', 'exception': 'ERROR',
           'critical': 'ERROR'}


class LogLines(docutils.SphinxDirective):
    """A section for each package, with a table of its lines."""

    def run(self):
        self.env.note_dependency(str(MEANINGS))
        return self.parse_text_to_nodes(
            statemachine.StringList(
                list(page(written(), meanings())), str(MEANINGS)),
            allow_section_headings=True)


def page(lines, texts):
    """The lines of the page.

    :param lines: {(package, level, log line)}
    :param texts: {log line: meaning and action}
    """
    order = {line: place for place, line in enumerate(texts)}
    for package, found in itertools.groupby(
            sorted(lines, key=lambda item: (
                item[0], order.get(item[2], -1), item[1])),
            key=lambda item: item[0]):
        title = f'``{package}``'
        yield from (title, '=' * len(title), '')
        yield from ('.. list-table::', '   :header-rows: 1',
                    '   :widths: 12 44 44', '')
        yield from ('   * - Level', '     - Line',
                    '     - Meaning, and what to do')
        for _package, level, line in found:
            yield f'   * - {level}'
            yield f'     - ``{line}``'
            yield f'     - {texts[line]}'
        yield ''


def meanings():
    """{log line: meaning and action} in the order of the file."""
    return yaml.safe_load(MEANINGS.read_text(encoding='utf-8'))


def as_told(text):
    """The words of a format, with ... for what changes."""
    text = re.sub(r'%(\(\w+\))?[-.\d]*[a-z]', '...', text)
    return re.sub(r'\.{3,}', '...', ' '.join(text.split()))


def _formats(node, tree):
    """The texts that the argument of a call can be."""
    if isinstance(node, ast.Constant):
        return [node.value]
    # A table of the module, or its only text.
    name = node.value.id if isinstance(node, ast.Subscript) else node.id
    table, = (item.value for item in tree.body
              if isinstance(item, ast.Assign) and item.targets[0].id == name)
    return [item.value for item in getattr(table, 'values', [table])]


def _level_of(call):
    """WARNING, ERROR or None; and the place of the format."""
    method = call.func.attr
    if method != 'log':
        return _LEVELS.get(method), 0
    named = {item.attr for item in ast.walk(call.args[0])
             if isinstance(item, ast.Attribute)}
    return next((level for level in ('ERROR', 'WARNING') if level in named),
                None), 1


def lines_of(text):
    """{(level, line)} of what a module logs at WARNING or ERROR."""
    tree = ast.parse(text)
    found = set()
    for call in ast.walk(tree):
        if (isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and isinstance(call.func.value, ast.Name)
                and call.func.value.id == 'LOG'):
            level, place = _level_of(call)
            if level is not None:
                found |= {(level, as_told(item))
                          for item in _formats(call.args[place], tree)}
    return found


def written():
    """{(package, level, line)} of all but openstackclient's plugin."""
    found = set()
    for path in CODE.rglob('*.py'):
        package = path.relative_to(CODE).parts[0]
        package = 'nova_preempt' if package.endswith('.py') else package
        if package != 'client':
            found |= {(package, *item)
                      for item in lines_of(path.read_text(encoding='utf-8'))}
    return found


def setup(app):
    """Called by Sphinx."""
    app.add_directive('log-lines', LogLines)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
