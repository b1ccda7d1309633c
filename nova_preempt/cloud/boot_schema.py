# SPDX-License-Identifier: Apache-2.0

"""Nova's own JSON Schema of the body of POST /servers.

The schemas are those of the installed Nova. They import much of nova-api:
load() does so before workers are forked, so that workers share it. Up to Nova
2025.2 the import would make eventlet patch the process.
"""

import functools
import importlib
import os
import re

import jsonschema.exceptions

#: The engine tags servers when it boots them, which needs this version.
OLDEST = '2.52'
#: The version if a user names none: the latest with a schema of its own.
DEFAULT = '2.94'
#: Nova allows 50 tags for a server; the engine uses one.
MAX_TAGS = 49

# Characters of an error text.
_MAX_SHOWN = 300

_SERVERS = 'nova.api.openstack.compute.schemas.servers'
_VALIDATORS = 'nova.api.validation.validators'
_VERSIONS = 'nova.api.openstack.api_version_request'
_NAME = re.compile(r'create(?:_v(\d)(\d+))?')
_VERSION = re.compile(r'([0-9])\.(0|[1-9][0-9]{0,3})')


class InvalidBody(Exception):
    """Nova would refuse the body.

    :ivar path: of the invalid field, such as ".server.networks"; '' for the
        whole body
    :ivar text: the error, without the field's value, which may be secret
    """

    def __init__(self, path, text):
        super().__init__(f'{path}: {text}')
        self.path = path
        self.text = text


def load():
    """Import the schemas; otherwise check() imports them."""
    newest_version()
    _schemas()
    _module(_VALIDATORS)


def check_version(text):
    """Return why a microversion of Nova cannot be used, '' if it can.

    """
    oldest, newest = _parsed(OLDEST), newest_version()
    found = _VERSION.fullmatch(text) and _parsed(text)
    if found and oldest <= found <= newest:
        return ''
    return (f'{text!r} must be a microversion of Nova from {OLDEST} to '
            f'{newest[0]}.{newest[1]}')


@functools.cache
def newest_version():
    """Return the latest microversion of the installed Nova, (2, number)."""
    found = _module(_VERSIONS).max_api_version()
    return found.ver_major, found.ver_minor


def check(body, version):
    """Validate a body as nova-api does with this microversion.

    :raises InvalidBody:
    """
    validator = _module(_VALIDATORS)._SchemaValidator(
        _schema(_parsed(version)))
    error = jsonschema.exceptions.best_match(
        validator.validator.iter_errors(body))
    if error is not None:
        raise InvalidBody(
            ''.join(f'.{part}' for part in error.absolute_path),
            _complaint(error))


def _complaint(error):
    """The message of a jsonschema.ValidationError without the value."""
    value = repr(error.instance)
    if error.validator in ('additionalProperties', 'required'):
        # These name members.
        text = error.message
    elif error.message.startswith(value):
        text = f'it {error.message[len(value):].strip()}'
    else:
        text = f'it must satisfy {error.validator!r} of the schema'
    return text if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'


def _schema(version):
    """Return the latest schema up to a version, a pair of numbers."""
    known = _schemas()
    return known[max(since for since in known if since <= version)]


@functools.cache
def _schemas():
    """Return {first microversion: schema} of Nova's schemas."""
    found = {}
    for name, value in vars(_module(_SERVERS)).items():
        match = _NAME.fullmatch(name)
        if match:
            # "create" is the schema of 2.1; "create_v20" does not match.
            found[tuple(map(int, match.groups()))
                  if match[1] else (2, 1)] = value
    return found


def _module(name):
    """Import a module of nova.api without eventlet."""
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
    return importlib.import_module(name)


def _parsed(text):
    return tuple(map(int, text.split('.')))
