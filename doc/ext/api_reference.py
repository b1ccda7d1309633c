# SPDX-License-Identifier: Apache-2.0
"""The directive "api-reference": our OpenAPI document as a page."""

import itertools

from docutils import statemachine
from sphinx.util import docutils

from nova_preempt.api import microversion
from nova_preempt.api import operation_table

# Where parameters are, as people call it.
_PLACES = {'path': 'in the path', 'query': 'in the query'}


class ApiReference(docutils.SphinxDirective):
    """Sections for all operations, made of those that the API routes by."""

    def run(self):
        document = operation_table.make_document('/')
        self.env.note_dependency(operation_table.__file__)
        return self.parse_text_to_nodes(
            statemachine.StringList(
                list(page(document)), operation_table.__file__),
            allow_section_headings=True)


def page(document):
    """The lines of the page.

    :param document: an OpenAPI 3.1 document
    """
    known = {item.name: item for item in operation_table.OPERATIONS}
    for group, paths in itertools.groupby(
            document['paths'].items(), lambda item: _group(item[0])):
        yield from _title(group, '=')
        for path, methods in paths:
            for method, operation in methods.items():
                yield from _operation(
                    f'{method.upper()} {path}', operation,
                    known.get(operation['operationId']))


def _group(path):
    words = path.removeprefix('/v1').strip('/').split('/')[0]
    if '.' in words or not words:
        return 'Versions'
    return words.replace('-', ' ').capitalize()


def _title(text, line):
    return [text, line * len(text), '']


def _operation(title, operation, known):
    yield from _title(title, '-')
    notes = [f'{operation["summary"]}.']
    if known and known.since not in (None, microversion.VERSIONS[0]):
        notes.append(f'From microversion {known.since} on.')
    if known:
        notes.append(f'Policy: ``{known.rule}``.')
    if 'security' not in operation:
        notes.append('Needs no token.')
    yield from (' '.join(notes), '')
    yield from _table('Parameters', [
        (item['name'], _PLACES[item['in']], item['schema'],
         item.get('required')) for item in operation['parameters']
        if item['in'] in _PLACES])
    yield from _table('Request', _members(
        _schema(operation.get('requestBody'))))
    for code, response in operation['responses'].items():
        if code < '400':
            yield from (f'Answer: {code} {response["description"]}.', '')
            yield from _table('Answer', _members(_schema(response)))
    errors = ', '.join(f'{code} {response["description"]}' for code, response
                       in operation['responses'].items() if code >= '400')
    yield from (f'Errors: {errors}.', '')


def _schema(holder):
    """That of a request or an answer, {} if it has no body."""
    content = (holder or {}).get('content', {})
    return next(iter(content.values()))['schema'] if content else {}


def _members(schema, name='', required=False):
    """(name, '', schema, whether it is required) of all that has a name."""
    if name:
        yield name, '', schema, required
    inner = schema.get('items', {})
    if 'properties' in inner:
        name, schema = f'{name}[]', inner
    for member, found in schema.get('properties', {}).items():
        yield from _members(
            found, f'{name}.{member}' if name else member,
            member in schema.get('required', ()))


def _table(title, rows):
    rows = list(rows)
    if not rows:
        return
    yield from (f'.. list-table:: {title}', '   :header-rows: 1',
                '   :widths: 35 25 40', '')
    yield from ('   * - Name', '     - Type', '     - Meaning')
    for name, place, schema, required in rows:
        yield f'   * - ``{name}``' + ('' if required else ' (optional)')
        yield f'     - {_type(schema)}'
        meaning = schema.get('description', '')
        if place:
            meaning = f'{place.capitalize()}. {meaning}'
        yield f'     - {_plain(meaning)}'.rstrip()
    yield ''


def _plain(text):
    return text.replace('\\', '\\\\').replace('*', '\\*')


def _type(schema):
    if 'anyOf' in schema:
        return ' or '.join(map(_type, schema['anyOf']))
    if 'enum' in schema:
        return ', '.join(f'``{value}``' for value in schema['enum'])
    kinds = schema.get('type', 'any')
    if isinstance(kinds, str):
        kinds = [kinds]
    text = ' or '.join({'array': _list}.get(kind, _one)(kind, schema)
                       for kind in kinds)
    return text + _bounds(schema)


def _list(_kind, schema):
    items = schema.get('items')
    return f'array of {_type(items)}' if items else 'array'


def _one(kind, schema):
    if kind == 'string':
        return {'uuid': 'UUID', 'date-time': 'time'}.get(
            schema.get('format'), kind)
    return kind


def _bounds(schema):
    least, most = schema.get('minimum'), schema.get('maximum')
    return ''.join(f', {word} {value:g}' if isinstance(value, float)
                   else f', {word} {value}'
                   for word, value in (('from', least), ('to', most))
                   if value is not None)


def setup(app):
    """Called by Sphinx."""
    app.add_directive('api-reference', ApiReference)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
