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
"""YAML that is checked while it is read, with the line of each error."""

import math
import re

import yaml
from yaml.constructor import SafeConstructor

_PLAIN = re.compile(r'[A-Za-z0-9._-]{1,40}\Z')


class BadFile(Exception):
    """The text says where the file is wrong and how, on one line."""


class Reader:
    """Reads the nodes of one file, which know their lines.

    Every method takes the path of its node, such as hosts[0].vcpus, which
    names it in errors, and raises BadFile.

    :param source: what to call the file in errors
    """

    def __init__(self, source):
        self._source = source

    def compose(self, content):
        """Return the node of the whole file, given its bytes."""
        try:
            node = yaml.compose(content, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark or exc.context_mark
            self._fail_at(mark.line + 1, '', f'is not YAML: {exc.problem}')
        except yaml.reader.ReaderError as exc:
            self._fail_at(content.count(b'\n', 0, exc.position) + 1, '',
                          f'is not YAML: {exc.reason}')
        except RecursionError:
            self._fail_at(1, '', 'is nested too deeply')
        if node is None:
            self._fail_at(1, '', 'is empty')
        return node

    def fail(self, node, path, message):
        """Say what is wrong with a node."""
        self._fail_at(node.start_mark.line + 1, path, message)

    def _fail_at(self, line, path, message):
        parts = [f'{self._source}:{line}', path, message]
        text = ': '.join(part for part in parts if part)
        raise BadFile(' '.join(text.split())) from None

    # -- structure -------------------------------------------------------

    def mapping(self, node, path, required, optional=()):
        """Return {key: node} of a mapping with these keys."""
        keys = {}
        for key, value in self.pairs(node, path):
            if key.value not in (*required, *optional):
                self.fail(key, _join(path, _show_key(key)), 'unknown key')
            keys[key.value] = value
        for name in required:
            if name not in keys:
                self.fail(node, _join(path, name), 'is missing')
        return keys

    def pairs(self, node, path):
        """Return [(key node, node)] of a mapping with any keys."""
        if not isinstance(node, yaml.MappingNode):
            self.fail(node, path, f'must be a mapping, not {show(node)}')
        seen = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fail(key, path, f'a key must be text, not {show(key)}')
            if key.value in seen:
                self.fail(key, _join(path, _show_key(key)), 'is there twice')
            seen.add(key.value)
        return node.value

    def items(self, node, path):
        """Return [(node, path)] of a list; none if there is no node."""
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.fail(node, path, f'must be a list, not {show(node)}')
        return [(item, f'{path}[{index}]')
                for index, item in enumerate(node.value)]

    # -- values ----------------------------------------------------------

    def text(self, node, path):
        """Return a str."""
        if not _is(node, 'str'):
            self.fail(node, path, f'must be text, not {show(node)}')
        return node.value

    def one_of(self, node, path, known, what):
        """Return a str that is among the known ones."""
        value = self.text(node, path)
        if value not in known:
            self.fail(node, path, f'there is no {what} {show(node)}')
        return value

    def boolean(self, node, path):
        """Return a bool."""
        value = None
        if _is(node, 'bool'):
            value = _construct(SafeConstructor.construct_yaml_bool, node)
        if value is None:
            self.fail(node, path, f'must be true or false, not {show(node)}')
        return value

    def integer(self, node, path, least, most):
        """Return an int from least to most."""
        if not _is(node, 'int'):
            self.fail(node, path, f'must be a whole number, not {show(node)}')
        return self._within(
            node, path, SafeConstructor.construct_yaml_int, least, most)

    def number(self, node, path, least, most):
        """Return an int or float from least to most."""
        if _is(node, 'int'):
            return self.integer(node, path, least, most)
        if not _is(node, 'float'):
            self.fail(node, path, f'must be a number, not {show(node)}')
        return self._within(
            node, path, SafeConstructor.construct_yaml_float, least, most)

    def _within(self, node, path, construct, least, most):
        value = _construct(construct, node)
        if value is None:
            value = math.nan
        if not least <= value <= most:
            self.fail(node, path,
                      f'must be from {least} to {most}, not {show(node)}')
        return value


def show(node):
    """Return what is in the file there, short and on one line."""
    if isinstance(node, yaml.MappingNode):
        return 'a mapping'
    if isinstance(node, yaml.SequenceNode):
        return 'a list'
    if _is(node, 'null'):
        return 'nothing'
    text = ascii(node.value[:40])
    return text if _is(node, 'str') else text[1:-1]


def _construct(construct, node):
    """Return the value of a scalar, None if its tag promises too much.

    As in "!!int many", or with more digits than Python wants to read.
    """
    try:
        return construct(SafeConstructor(), node)
    except (ValueError, LookupError):
        return None


def _is(node, kind):
    return (isinstance(node, yaml.ScalarNode)
            and node.tag == f'tag:yaml.org,2002:{kind}')


def _join(path, name):
    return f'{path}.{name}' if path else name


def _show_key(node):
    return node.value if _PLAIN.match(node.value) else ascii(node.value[:40])
