# SPDX-License-Identifier: Apache-2.0
"""Reads [energy]hosts_file: settings of single hosts."""

import re
import shlex

import jsonschema
import yaml

from nova_preempt.core import credential_masking
from nova_preempt.power import power_errors

# NOTE: a host's name goes into addresses and arguments of commands, where a
# leading dash would be an option and a slash another server.
_HOST = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.:-]*')
_FIELD = re.compile(r'\{(\w+)\}')
# Keys whose values stay out of messages.
_SECRET = frozenset(('password',))

_TEXT = {'type': 'string', 'minLength': 1}
_COMMAND = {'anyOf': [
    _TEXT, {'type': 'array', 'items': {'type': 'string'}, 'minItems': 1}]}


def _section(**properties):
    return {'type': 'object', 'additionalProperties': False,
            'properties': properties}


_SCHEMA = {
    'type': 'object',
    'additionalProperties': _section(
        driver=_TEXT,
        redfish=_section(
            address={'type': 'string', 'pattern': '^https?://[^/]'},
            username=_TEXT, password={'type': 'string'},
            system={'type': 'string', 'pattern': '^/'},
            verify={'anyOf': [{'type': 'boolean'}, _TEXT]}),
        ironic=_section(node=_TEXT),
        command=_section(
            on=_COMMAND, off=_COMMAND, force_off=_COMMAND, status=_COMMAND,
            on_pattern=_TEXT,
            mac={'type': 'string',
                 'pattern': '^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$'},
            broadcast=_TEXT),
        source_names={'type': 'object', 'additionalProperties': _TEXT}),
}


def _known(schema):
    """Return the names of all properties in a schema."""
    if isinstance(schema, dict):
        return {*schema.get('properties', ()), *(
            name for part in schema.values() for name in _known(part))}
    return set()


_KNOWN = _known(_SCHEMA)


class HostsFile:
    """Settings by node name; none if path is empty.

    :raises HostsFileError: naming the file, the host, the key and the rule
    """

    def __init__(self, path=''):
        self.path = path
        self._hosts = load_yaml(path, _SCHEMA) if path else {}

    def section(self, host, name):
        """Return a host's section of a name such as 'redfish'."""
        return dict(self._hosts.get(host, {}).get(name, {}))

    def driver(self, host, default):
        """Return the name of a host's driver."""
        return self._hosts.get(host, {}).get('driver', default)

    def drivers(self):
        """Return {driver: a host that names it}, to check them early."""
        return {value['driver']: host for host, value in self._hosts.items()
                if 'driver' in value}

    def source_name(self, host, source):
        """Return a host's name in a source, by default its node name."""
        return self.section(host, 'source_names').get(source, host)


def load_yaml(path, schema):
    """Return a YAML file that is a mapping by node name.

    :raises HostsFileError: naming the file and its faults
    """
    try:
        with open(path, encoding='utf-8') as stream:
            content = load_document(stream)
    except yaml.YAMLError as exc:
        # NOTE: not "from exc": it quotes the line.
        raise power_errors.HostsFileError(
            f'{path}: {yaml_problem(exc)}') from None
    except (OSError, UnicodeDecodeError) as exc:
        raise power_errors.HostsFileError(f'{path}: {exc}') from exc
    content = {} if content is None else content
    if isinstance(content, dict) and content.keys() & _SECRET:
        # NOTE: the keys beside it are no hosts: any may be the password.
        raise power_errors.HostsFileError(
            f'{path}: a password must be below the name of its host')
    wrong = [_describe(error) for error in
             jsonschema.Draft202012Validator(schema).iter_errors(content)]
    if not wrong and not all(isinstance(host, str) for host in content):
        wrong = ['a host name must be a string; put it in quotes']
    if wrong:
        raise power_errors.HostsFileError(
            f'{path}: ' + '; '.join(sorted(wrong)))
    return content


def _describe(error):
    """Return place and fault, without values or unknown keys.

    Any of them may be a password, where a line is indented wrongly or a colon
    is missing.
    """
    path = [str(key) for key in error.absolute_path]
    place = [f'host {path[0]}'] if path else []
    if path[1:]:
        place.append('.'.join(key if key in _KNOWN or key.isdecimal() else
                              credential_masking.MASK for key in path[1:]))
    rule = error.validator_value
    what = {
        'type': f'must be of type {rule!r}',
        'pattern': f'must match {rule!r}',
        'minLength': 'must not be empty', 'anyOf': 'has the wrong type',
    }.get(error.validator, f'must satisfy {error.validator!r} of its schema')
    if error.validator == 'additionalProperties':
        names = ', '.join(sorted(error.schema['properties']))
        what = f'it has an unknown key; the known keys are {names}'
    return ': '.join((*place, what))


def expand(text, host):
    """Replace {host}, and {short}, the name up to the first dot, in a text.

    :raises HostsFileError: another field, or a name unfit for a command
    """
    values = {'host': host, 'short': host.split('.', 1)[0]}
    fields = set(_FIELD.findall(text))
    # NOTE: neither text nor field are quoted: either may have a password.
    if fields - set(values):
        raise power_errors.HostsFileError(
            'an address, or an argument of a command, in [energy] or its '
            'hosts_file has an unknown field in braces; the known fields are '
            '{host} and {short}')
    if fields and not _HOST.fullmatch(host):
        raise power_errors.HostsFileError(
            f'host name {host!r} has characters that are not allowed in an '
            'address or an argument of a command')
    return _FIELD.sub(lambda match: values[match[1]], text)


def command(value, host):
    """Return the arguments of a command, given as a list or as one string.

    A string is split as by a shell, but never given to one.

    :raises HostsFileError: it cannot be split or filled in
    """
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as exc:
            # NOTE: not the command, as it may have a password.
            raise power_errors.HostsFileError(
                f'a command of [energy] or its hosts_file: {exc}') from exc
    return [expand(argument, host) for argument in value]


# NOTE: PyYAML reads YAML 1.1, where ``on: touch x`` has the key True, the MAC
# address 52:54:00:12:34:56 is a number to base 60, and 1.2e12 is a string.
# This loader has the core schema of YAML 1.2.
_TAG = 'tag:yaml.org,2002:'

# Quoted text in PyYAML's own messages: marks and names of tokens.
_ITS_OWN = re.compile(r"""'(?:[:,\]}-]|<[a-z ]+>)'""")


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}


_FLOAT = (r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?'
          r'|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)')

for _tag, _pattern, _first in (
        ('null', '~|null|Null|NULL|', ['~', 'n', 'N', '']),
        ('bool', 'true|True|TRUE|false|False|FALSE', list('tTfF')),
        ('int', '[-+]?(0|[1-9][0-9]*)', list('-+0123456789')),
        ('float', _FLOAT, list('-+.0123456789')), ('merge', '<<', ['<'])):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(f'(?:{_pattern})$'),
                                  _first)


def load_document(stream):
    """Return the content of a YAML document.

    :raises yaml.YAMLError: it is invalid
    """
    try:
        return yaml.load(stream, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError):
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError,
            TypeError, ValueError):
        # NOTE: of a value that does not fit its tag, or nested too deeply;
        # some messages quote the value.
        raise yaml.YAMLError from None


def yaml_problem(exc):
    """Return fault and place without quoting, as it may be a password.

    :param exc: a yaml.YAMLError
    """
    mark = getattr(exc, 'problem_mark', None)
    place = (f'line {mark.line + 1}, column {mark.column + 1}: ' if mark
             else '')
    problem = getattr(exc, 'problem', None) or 'it cannot be parsed'
    if re.search('[\'"]', _ITS_OWN.sub('', problem)):
        problem = re.sub('[\'"].*[\'"]', credential_masking.MASK, problem,
                         flags=re.DOTALL)
    return f'{place}invalid YAML: {problem}'
