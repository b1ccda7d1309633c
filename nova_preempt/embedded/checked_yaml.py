# SPDX-License-Identifier: Apache-2.0
"""YAML files with a schema; errors have the line number."""

import math
import re

import jsonschema
import jsonschema.validators
import yaml
from yaml.constructor import SafeConstructor

_PLAIN = re.compile(r'[A-Za-z0-9._:-]{1,40}\Z')
_CONSTRUCT = {'bool': SafeConstructor.construct_yaml_bool,
              'int': SafeConstructor.construct_yaml_int,
              'float': SafeConstructor.construct_yaml_float}
_TYPES = {'object': 'a mapping', 'array': 'a list', 'string': 'text',
          'scalar': 'text', 'boolean': 'true or false',
          'integer': 'a whole number', 'number': 'a number'}
# What a tag promises and is not there, as in "!!int many", or in more digits
# than Python wants to read: it is within no bounds.
_UNREADABLE = math.nan


class BadFile(Exception):
    """A file is invalid; the message has place and reason, on one line."""


# -- schemas -------------------------------------------------------------

TEXT = {'type': 'string'}
FLAG = {'type': 'boolean'}
#: Text, or a scalar that YAML types otherwise; see CheckedYaml.text().
SCALAR = {'type': 'scalar'}


def integer(least, most):
    """Return the schema of a whole number."""
    return {'type': 'integer', 'within': (least, most)}


def number(least, most):
    """Return the schema of a number."""
    return {'type': 'number', 'within': (least, most)}


def mapping(required, optional=None):
    """Return the schema of a mapping with these keys, {key: schema}."""
    return {'type': 'object', 'properties': {**required, **(optional or {})},
            'required': list(required), 'additionalProperties': False}


def _is_integer(_checker, value):
    return value is _UNREADABLE or (
        isinstance(value, int) and not isinstance(value, bool))


def _is_scalar(_checker, value):
    return not isinstance(value, dict | list)


def _within(_validator, bounds, value, _schema):
    least, most = bounds
    if isinstance(value, int | float) and not least <= value <= most:
        yield jsonschema.ValidationError(f'must be from {least} to {most}')


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {'within': _within},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {'integer': _is_integer, 'scalar': _is_scalar}))


class CheckedYaml:
    """The content of a file.

    A path identifies a value: ('hosts', 0, 'vcpus') is hosts[0].vcpus.

    :param source: what to call the file in errors
    :param content: its bytes
    :param schema: JSON schema; ``description`` says what a ``pattern`` asks
        for, ``title`` what an ``enum`` is of
    :ivar value: what is in it, as Python has it
    :raises BadFile: it is not YAML, or not as the schema says
    """

    def __init__(self, source, content, schema):
        self._source = source
        self._values = {}
        try:
            self._root = yaml.compose(content, Loader=yaml.SafeLoader)
            if self._root is None:
                self._fail_at(1, (), 'must not be empty')
            self.value = self._read(self._root, ())
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark or exc.context_mark
            self._fail_at(mark.line + 1, (), f'invalid YAML: {exc.problem}')
        except yaml.reader.ReaderError as exc:
            self._fail_at(content.count(b'\n', 0, exc.position) + 1, (),
                          f'invalid YAML: {exc.reason}')
        except RecursionError:
            self._fail_at(1, (), 'is nested too deeply')
        faults = [(len(error.absolute_path), *self._fault(error))
                  for error in _Validator(schema).iter_errors(self.value)]
        if faults:
            # First what is wrong with the keys of a mapping.
            self._fail_at(*min(faults, key=lambda fault: fault[:2])[1:])

    def _read(self, node, path):
        # The target of aliases is read once.
        if node not in self._values:
            self._values[node] = (
                self._mapping(node, path)
                if isinstance(node, yaml.MappingNode) else
                [self._read(item, (*path, index))
                 for index, item in enumerate(node.value)]
                if isinstance(node, yaml.SequenceNode) else _scalar(node))
        return self._values[node]

    def _mapping(self, node, path):
        found = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._fail_at(_line(key), path,
                              f'a key must be text, not {_show(key)}')
            if key.value in found:
                self._fail_at(_line(key), (*path, key.value), 'duplicate key')
            found[key.value] = self._read(value, (*path, key.value))
        return found

    def fail(self, path, message):
        """Report an invalid or missing value.

        :raises BadFile: always
        """
        self._fail_at(_line(self._node(path)), path, message)

    def text(self, path):
        """Return a scalar as it is written."""
        return self._node(path).value

    def show(self, path):
        """Return the text of a value, short and on one line."""
        return _show(self._node(path))

    def _node(self, path):
        """Return the node of a value, or its nearest existing ancestor."""
        node = self._root
        for part in path:
            found = (node.value[part] if isinstance(part, int) else next(
                (value for key, value in node.value if key.value == part),
                None))
            if found is None:
                break
            node = found
        return node

    def _fault(self, error):
        """Return (line, path, message) of a ValidationError."""
        path = tuple(error.absolute_path)
        node = self._node(path)
        rule, wanted = error.validator, error.validator_value
        keys = {key.value: key for key, _ in node.value} if isinstance(
            node, yaml.MappingNode) else {}
        if rule == 'required':
            missing = next(name for name in wanted if name not in keys)
            return _line(node), (*path, missing), 'is missing'
        if rule == 'additionalProperties':
            name = next(name for name in keys
                        if name not in error.schema['properties'])
            return _line(keys[name]), (*path, name), 'unknown key'
        if rule in ('minItems', 'minProperties'):
            return _line(node), path, 'must not be empty'
        if isinstance(error.instance, str):
            # The error of a key has the path of its mapping.
            node = keys.get(error.instance, node)
        message = {'type': f'must be {_TYPES.get(str(wanted))}, not',
                   'enum': f'there is no {error.schema.get("title")}',
                   'pattern': f'{error.schema.get("description")}, not',
                   'within': f'{error.message}, not'}[rule]
        return _line(node), path, f'{message} {_show(node)}'

    def _fail_at(self, line, path, message):
        parts = [f'{self._source}:{line}', _show_path(path), message]
        text = ': '.join(part for part in parts if part)
        raise BadFile(' '.join(text.split())) from None


def _scalar(node):
    kind = node.tag.removeprefix('tag:yaml.org,2002:')
    if kind == 'str':
        return node.value
    if kind not in _CONSTRUCT:
        return None
    try:
        return _CONSTRUCT[kind](SafeConstructor(), node)
    except (ValueError, LookupError):
        return _UNREADABLE


def _line(node):
    return node.start_mark.line + 1


def _show(node):
    if isinstance(node, yaml.MappingNode):
        return 'a mapping'
    if isinstance(node, yaml.SequenceNode):
        return 'a list'
    if node.tag.endswith(':null'):
        return 'nothing'
    text = ascii(node.value[:40])
    return text if node.tag.endswith(':str') else text[1:-1]


def _show_path(path):
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            text += '.' * bool(text) + (
                part if _PLAIN.match(part) else ascii(part[:40]))
    return text
