# SPDX-License-Identifier: Apache-2.0
"""Validates queries and bodies; errors name the field."""

import datetime
import json
import math
import re
import urllib.parse

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import webob.exc

_UUID = re.compile(r'[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')
_INTEGER = re.compile(r'-?[0-9]{1,18}')
_BOOLEANS = {'true': True, 'false': False}
# More than any request needs.
_MAX_PARAMETERS = 100
# The deepest nesting of a body, since recursive functions process it.
_MAX_NESTING = 32
_MAX_SHOWN = 200

_formats = jsonschema.FormatChecker(formats=())


@_formats.checks('uuid', raises=())
def is_uuid(value):
    """Return whether a value is a UUID in Nova's format, in either case."""
    return not isinstance(value, str) or bool(_UUID.fullmatch(value))


@_formats.checks('date-time', raises=ValueError)
def _is_time(value):
    if isinstance(value, str):
        parse_time(value)
    return True


def parse_time(text):
    """Return a naive UTC datetime.

    :param text: ISO 8601; UTC if it has no offset
    :raises ValueError: it is not a time
    """
    if 'T' not in text.upper():
        raise ValueError(text)
    time = datetime.datetime.fromisoformat(text.upper())
    if time.tzinfo is None:
        return time
    try:
        return time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    except OverflowError:
        # On the first or last day that datetime supports.
        return time.replace(tzinfo=None)


def _pattern(validator, pattern, value, schema):
    """Match as in ECMAScript, where $ is the end of the text only."""
    if not validator.is_type(value, 'string'):
        return
    if not re.search(re.sub(r'\$$', r'\\Z', pattern), value):
        yield jsonschema.ValidationError(
            f'{value!r} has characters that are not allowed')


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {'pattern': _pattern})


def query(schema, query_string):
    """Return the parameters of a request as {name: value}.

    :param schema: of an object; parameters are converted to its integers,
        booleans and arrays
    :param query_string: as in the WSGI environment
    """
    values = {}
    for name, text in _parameters(query_string):
        kind = schema['properties'].get(name, {}).get('type')
        if name not in schema['properties']:
            raise _refusal(f'Unknown query parameter {_shown(name)}.')
        if kind == 'array':
            values.setdefault(name, []).append(text)
        elif name in values:
            raise _refusal(f'Query parameter {name!r} is given twice.')
        else:
            values[name] = _converted(kind, text)
    _validate(schema, values, 'query parameter')
    return values


def _parameters(query_string):
    # WSGI has the bytes as Latin-1; invalid UTF-8 becomes lone surrogates,
    # which no schema allows.
    text = query_string.encode('latin-1').decode('utf-8', 'surrogateescape')
    try:
        return urllib.parse.parse_qsl(
            text, keep_blank_values=True, errors='surrogateescape',
            max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise _refusal(
            f'There are more than {_MAX_PARAMETERS} query parameters.'
        ) from None


def _converted(kind, text):
    if kind == 'integer' and _INTEGER.fullmatch(text):
        return int(text)
    if kind == 'boolean':
        return _BOOLEANS.get(text, text)
    return text


def body(schema, raw):
    """Return the parsed and validated body of a request.

    :param raw: bytes
    """
    try:
        value = json.loads(raw.decode('utf-8'), parse_float=_number,
                           parse_constant=_no_constant)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _refusal('The body is not valid JSON.') from None
    _check_nesting(value)
    _validate(schema, value, 'field')
    _check_texts(value)
    return value


def _check_nesting(value):
    level = [value]
    for _depth in range(_MAX_NESTING):
        level = [item for part in level
                 for item in (part.values() if isinstance(part, dict)
                              else part if isinstance(part, list) else ())]
    if level:
        raise _too_deep()


def _check_texts(value, path=()):
    # A lone surrogate, such as "\ud800", can be neither sent nor stored.
    if isinstance(value, dict):
        for name, item in value.items():
            _check_texts(name, path)
            _check_texts(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_texts(item, (*path, str(number)))
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _refusal(f'Invalid field {_shown(".".join(path))}: it has '
                           'an unpaired surrogate.') from None


def _too_deep():
    return _refusal('The body has objects and lists nested more than '
                    f'{_MAX_NESTING} levels deep.')


def _number(text):
    # JSON Schema takes 60.0 for an integer.
    value = float(text)
    if not math.isfinite(value):
        raise _refusal(f'The body has a number that is too large: '
                       f'{_cut(text)}.')
    exact = abs(value) < 2 ** 53 and value.is_integer()
    return int(value) if exact else value


def _no_constant(name):
    raise ValueError(name)  # NaN and the like are not JSON


def _validate(schema, value, what):
    validator = _Validator(schema, format_checker=_formats)
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is None:
        return
    path = [str(part) for part in error.absolute_path]
    message = error.message
    if error.validator == 'required':
        path.append(next(name for name in error.validator_value
                         if name not in error.instance))
        message = 'it is missing'
    elif error.validator == 'additionalProperties':
        path.append(min(set(error.instance) - set(error.schema['properties'])))
        message = 'it is unknown'
    elif error.validator == 'format':
        message = f'{error.instance!r} is not a {error.validator_value}'
    elif error.validator == 'maxLength':
        message = f'it is longer than {error.validator_value} characters'
    if not path:
        raise _refusal(f'Invalid body: {_cut(message)}.')
    raise _refusal(
        f'Invalid {what} {_shown(".".join(path))}: {_cut(message)}.')


def _shown(name):
    return _cut(repr(name))


def _cut(text):
    return text if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'


def _refusal(message):
    return webob.exc.HTTPBadRequest(message)
