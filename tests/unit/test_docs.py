# SPDX-License-Identifier: Apache-2.0
"""Tests of the guide that Sphinx does not make."""

import pathlib
import unittest
import xml.etree.ElementTree

from docutils import core

from nova_preempt.api import operation_table
from tests import documents

DOC = pathlib.Path(__file__).parents[2] / 'doc'


def names(schema):
    """Yield the names of all members at any depth."""
    for name, inner in schema.get('properties', {}).items():
        yield name
        yield from names(inner)
    yield from names(schema.get('items') or {}) if schema else ()


class TestApiReference(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.extension = documents.extension('api_reference')
        self.document = operation_table.make_document('/')

    def test_all_is_there(self):
        tree = core.publish_doctree(
            '\n'.join(self.extension.page(self.document)),
            settings_overrides={'report_level': 2, 'halt_level': 2})
        sections = {}
        for section in tree.findall(lambda node: node.tagname == 'section'):
            sections[section[0].astext()] = section.astext()
        for operation in (*operation_table.PUBLIC,
                          *operation_table.OPERATIONS):
            text = sections[f'{operation.method} {operation.path}']
            self.assertIn(operation.summary, text)
            self.assertIn(operation.rule or 'Needs no token', text)
            for schema in (operation.query, operation.body,
                           operation.answer):
                for name in names(schema or {}):
                    self.assertIn(name, text)
            self.assertEqual(operation.since not in (None, '1.0'),
                             f'microversion {operation.since}' in text)

    def test_types(self):
        for schema, text in (
                ({'type': 'integer', 'minimum': -1, 'maximum': 5},
                 'integer, from -1, to 5'),
                ({'type': 'string', 'enum': ['a', 'b']}, '``a``, ``b``'),
                ({'type': ['number', 'null'], 'maximum': 1e9},
                 'number or null, to 1e+09'),
                ({'type': 'array', 'items': {
                    'type': 'string', 'format': 'uuid'}}, 'array of UUID'),
                ({'anyOf': [{'type': 'boolean'}, {}]}, 'boolean or any')):
            self.assertEqual(text, self.extension._type(schema))


class TestPictures(unittest.TestCase):

    def test_they_can_be_read(self):
        pictures = sorted((DOC / 'source' / 'pictures').glob('*.svg'))
        self.assertEqual(4, len(pictures))
        page = ''.join(page.read_text()
                       for page in (DOC / 'source').glob('*.rst'))
        for picture in pictures:
            self.assertIn(picture.name, page)
            root = xml.etree.ElementTree.parse(picture).getroot()
            space = '{http://www.w3.org/2000/svg}'
            # For who does not see them.
            self.assertTrue(root.find(f'{space}title').text)
            self.assertTrue(root.find(f'{space}desc').text)
            # They bring the paper that their ink needs.
            self.assertEqual('panel',
                             root.find(f'{space}rect').get('class'))
