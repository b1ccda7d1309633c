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
"""[energy]hosts_file: what belongs to single hosts."""

import re
import shlex

import jsonschema
import yaml

from nova_preempt.power import errors
from nova_preempt.power import yaml12

# A host's name goes into addresses and arguments of commands, where a leading
# dash would be an option and a slash another server.
_HOST = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.:-]*')
_FIELD = re.compile(r'\{(\w+)\}')
# Values of these stay out of messages.
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
            username=_TEXT,
            password={'type': 'string'},
            system={'type': 'string', 'pattern': '^/'},
            verify={'anyOf': [{'type': 'boolean'}, _TEXT]}),
        ironic=_section(node=_TEXT),
        command=_section(on=_COMMAND, off=_COMMAND, force_off=_COMMAND,
                         status=_COMMAND, on_pattern=_TEXT),
        standby=_section(
            suspend=_COMMAND, wake=_COMMAND, status=_COMMAND,
            mac={'type': 'string',
                 'pattern': '^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$'},
            broadcast=_TEXT),
        source_names={'type': 'object', 'additionalProperties': _TEXT}),
}


class HostsFile:
    """What the file says, by node name; that of no file if path is empty.

    :raises HostsFileError: naming the file, the host, the key and the value
    """

    def __init__(self, path=''):
        self.path = path
        self._hosts = load_yaml(path, _SCHEMA) if path else {}

    def section(self, host, name):
        """What belongs to this host under a name such as 'redfish'."""
        return dict(self._hosts.get(host, {}).get(name, {}))

    def driver(self, host, default):
        """The name of the driver of this host."""
        return self._hosts.get(host, {}).get('driver', default)

    def drivers(self):
        """{driver: a host that names it}, to check them early."""
        return {value['driver']: host for host, value in self._hosts.items()
                if 'driver' in value}

    def source_name(self, host, source):
        """What this host is called in a source; its own name if not told."""
        return self.section(host, 'source_names').get(source, host)


def load_yaml(path, schema):
    """The content of a YAML file that is a mapping by node name.

    :raises HostsFileError: naming the file and what is wrong in it
    """
    try:
        with open(path, encoding='utf-8') as stream:
            content = yaml12.load(stream)
    except yaml.YAMLError as exc:
        # NOTE: not "from exc": it quotes the line.
        raise errors.HostsFileError(f'{path}: {yaml12.why(exc)}') from None
    except (OSError, UnicodeDecodeError) as exc:
        raise errors.HostsFileError(f'{path}: {exc}') from exc
    content = {} if content is None else content
    wrong = [_describe(error) for error in
             jsonschema.Draft202012Validator(schema).iter_errors(content)]
    if not wrong and not all(isinstance(host, str) for host in content):
        wrong = ['a host name is not a string; put it in quotes']
    if wrong:
        raise errors.HostsFileError(
            f'{path}: ' + '; '.join(sorted(wrong)))
    return content


def _describe(error):
    """Where and what, without the passwords."""
    path = [str(key) for key in error.absolute_path]
    place = [f'host {path[0]}'] if path else []
    if path[1:]:
        place.append('.'.join(path[1:]))
    what = error.message
    if _SECRET.intersection(path):
        what = f'is not a {error.validator_value}'
    elif _may_be_secret(path, error.instance):
        what = f'what is there breaks the rule "{error.validator}"'
        if error.validator == 'additionalProperties':
            what = error.message
    elif error.validator == 'anyOf':
        what = f'{error.instance!r} is of the wrong kind'
    return ': '.join((*place, what))


def _may_be_secret(path, value):
    """Whether a password may be in it: in arguments of a command, in the
    user's part of an address, or where a line is indented wrongly.
    """
    if isinstance(value, str):
        return '@' in value or (len(path) == 2 and path[1] != 'driver')
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and bool(value) and (
        bool(path) or not all(isinstance(item, str) for item in value))


def expand(text, host):
    """The text with {host}, and {short}, its name up to the first dot.

    :raises HostsFileError: another field, or a name unfit for a command
    """
    values = {'host': host, 'short': host.split('.', 1)[0]}
    fields = set(_FIELD.findall(text))
    # Not the text, nor the field: there may be a password in either.
    if fields - set(values):
        raise errors.HostsFileError(
            'unknown field in braces in an address, or an argument of a '
            'command, of [energy] or its hosts_file; known are {host} and '
            '{short}')
    if fields and not _HOST.fullmatch(host):
        raise errors.HostsFileError(
            f'host name {host!r} may not be put into an address or an '
            'argument of a command')
    return _FIELD.sub(lambda match: values[match[1]], text)


def command(value, host):
    """The arguments of a command, given as a list or as one string.

    A string is taken apart as a shell would, but never given to one.

    :raises HostsFileError: it cannot be taken apart or filled in
    """
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as exc:
            # Not the command: there may be a password in it.
            raise errors.HostsFileError(
                f'a command of [energy] or its hosts_file: {exc}') from exc
    return [expand(argument, host) for argument in value]
