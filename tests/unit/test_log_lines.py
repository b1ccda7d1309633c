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
"""What the guide tells of the log and of metrics, against the code."""

import ast
import pathlib
import re
import unittest

import prometheus_client

from nova_preempt import metrics

ROOT = pathlib.Path(__file__).parents[2]
CODE = ROOT / 'nova_preempt'
SOURCE = ROOT / 'doc' / 'source'
LEVELS = {'warning': 'WARNING', 'error': 'ERROR', 'exception': 'ERROR',
          'critical': 'ERROR'}
ROW = re.compile(r'^   \* - (WARNING|ERROR)\n     - ``(.+?)``\n     - \S',
                 re.M | re.S)


def as_told(text):
    """The words of a format, with ... for what changes."""
    text = re.sub(r'%(\(\w+\))?[-.\d]*[a-z]', '...', text)
    return re.sub(r'\.{3,}', '...', ' '.join(text.split()))


def formats(node, tree):
    """Those that the argument of a call can be."""
    if isinstance(node, ast.Constant):
        return [node.value]
    # A table of the module, or its only text.
    name = node.value.id if isinstance(node, ast.Subscript) else node.id
    table, = (item.value for item in tree.body
              if isinstance(item, ast.Assign) and item.targets[0].id == name)
    return [item.value for item in getattr(table, 'values', [table])]


def level_of(call):
    """WARNING, ERROR or None; and the place of the format."""
    method = call.func.attr
    if method != 'log':
        return LEVELS.get(method), 0
    named = {item.attr for item in ast.walk(call.args[0])
             if isinstance(item, ast.Attribute)}
    return next((level for level in ('ERROR', 'WARNING') if level in named),
                None), 1


def lines_of(text):
    """{(level, line)} of what a module logs."""
    tree = ast.parse(text)
    found = set()
    for call in ast.walk(tree):
        if (isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and isinstance(call.func.value, ast.Name)
                and call.func.value.id == 'LOG'):
            level, place = level_of(call)
            if level is not None:
                found |= {(level, as_told(item))
                          for item in formats(call.args[place], tree)}
    return found


def written():
    """{(room, level, line)} of the code, but for openstackclient's plugin."""
    found = set()
    for path in CODE.rglob('*.py'):
        room = path.relative_to(CODE).parts[0]
        room = 'nova_preempt' if room.endswith('.py') else room
        if room != 'client':
            found |= {(room, *item) for item in lines_of(path.read_text())}
    return found


def told():
    """The same, of the guide."""
    parts = re.split(r'^``(\w+)``\n=+\n', (SOURCE / 'log-lines.rst')
                     .read_text(), flags=re.M)
    return [(room, level, as_told(line))
            for room, text in zip(parts[1::2], parts[2::2], strict=True)
            for level, line in ROW.findall(text)]


class TestLogLines(unittest.TestCase):

    def test_each_line_is_told_and_each_that_is_told_is_there(self):
        found = told()
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(written(), set(found))

    def test_how_lines_are_found(self):
        self.assertEqual(
            {('WARNING', 'Host ... is ...'), ('ERROR', 'A ... b'),
             ('WARNING', 'One ...'), ('WARNING', 'Two'),
             ('ERROR', 'Bad: ...')},
            lines_of('\n'.join((
                "_TEXTS = {1: 'One %(x)s.', 2: 'Two'}",
                "LOG.warning('Host %(a)s ' 'is %(b).1f', {})",
                "LOG.exception('A %s b', 1)",
                'LOG.warning(_TEXTS[kind], {})',
                "LOG.log(logging.ERROR if bad else logging.INFO,",
                "        'Bad: %s%s', a, b)",
                "LOG.info('Nothing')",
                "LOG.log(logging.DEBUG, 'Nothing')"))))


class TestMetrics(unittest.TestCase):

    def test_each_is_told(self):
        """With its labels, in one of the tables."""
        wanted = set()
        for metric in vars(metrics).values():
            if isinstance(metric, prometheus_client.metrics.MetricWrapperBase):
                name = metric._name + (
                    '_total' if metric._type == 'counter' else '')
                labels = ','.join(metric._labelnames)
                wanted.add(f'{name}{{{labels}}}' if labels else name)
        found = [name for page in SOURCE.glob('*.rst') for name in re.findall(
            r'^   \* - ``(nova_preempt_\S+)``\n     - \S', page.read_text(),
            re.M)]
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(wanted, set(found))
