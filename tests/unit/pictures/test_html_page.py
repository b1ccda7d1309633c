# SPDX-License-Identifier: Apache-2.0
"""Results as one HTML file."""

import base64
import html.parser
import re
import unittest

from nova_preempt.pictures import drawing
from nova_preempt.pictures import html_page

EVIL = '<script>x()</script>"\'><img src="http://evil" onload=x()>&amp;'


class Parser(html.parser.HTMLParser):
    """Collects elements, their attributes, and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


class TestPage(unittest.TestCase):

    def setUp(self):
        plot = drawing.Plot(EVIL, [drawing.Panel(EVIL, EVIL, EVIL, [
            drawing.FigureSeries(EVIL, [0, 1], [1, 2])])], EVIL)
        self.text = html_page.page(EVIL, [
            (EVIL, html_page.picture(plot)),
            (EVIL, html_page.table([['', EVIL], [EVIL, 'b'], ['c', EVIL]])),
            (EVIL, html_page.text(f'{EVIL}\n  {EVIL}'))])
        self.page = Parser(self.text)

    def test_texts_of_users_are_text(self):
        self.assertEqual(
            {'html', 'head', 'meta', 'title', 'style', 'body', 'h1', 'h2',
             'img', 'table', 'tr', 'th', 'td', 'pre'},
            {tag for tag, _ in self.page.elements})
        self.assertEqual(8, self.page.texts.count(EVIL))
        self.assertIn(f'{EVIL}\n  {EVIL}', self.page.texts)
        self.assertFalse([attrs for _, attrs in self.page.elements
                          if any(name.startswith('on') for name in attrs)])

    def test_nothing_is_loaded(self):
        (image,) = (attrs for tag, attrs in self.page.elements
                    if tag == 'img')
        self.assertTrue(image['src'].startswith('data:image/svg+xml;base64,'))
        self.assertIn(EVIL, image['alt'])
        svg = base64.b64decode(image['src'].partition(',')[2])
        self.assertNotIn(b'<script', svg)
        self.assertEqual([], [
            found for found in re.findall(rb'href="([^"]*)"', svg)
            if not found.startswith(b'#')])
        self.assertIn("default-src 'none'", self.text)
        self.assertFalse([attrs for tag, attrs in self.page.elements
                          if tag in ('link', 'script', 'iframe')])

    def test_a_table(self):
        self.assertEqual(
            '<table>\n<tr><th></th><th>a</th></tr>\n'
            '<tr><td>b</td><td>c</td></tr>\n</table>',
            html_page.table([['', 'a'], ['b', 'c']]))
