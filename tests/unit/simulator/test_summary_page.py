# SPDX-License-Identifier: Apache-2.0
"""A simulation as one HTML file."""

import unittest

from nova_preempt.pictures import drawing
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import summary_page
from tests.unit.simulator import small


class TestPage(unittest.TestCase):

    def test_pictures_tables_and_settings(self):
        summary = run.Simulation(small.cloud(), small.options()).run(
            [small.boot(0, 'n', 2, for_s=10)])
        page = summary_page.page(
            {'trace': 'a/<b>.swf', 'seed': '7'},
            {'five': {'[preemption]notice_s': '5'}, 'usual': {}},
            [summary, summary], [drawing.Plot('a', [drawing.Panel(
                'b', 'c', 'd', [drawing.FigureSeries('e', [1, 2], [3, 4])])],
                'It <rains>')], 'hosts: [<x>]')
        for text in (
                'a/&lt;b&gt;.swf', '<h2>It &lt;rains&gt;</h2>',
                '<img alt="It &lt;rains&gt;; b"',
                '<td>[preemption]notice_s</td><td>5</td><td>default</td>',
                '<th>five</th><th>usual</th>', '<td>seed</td><td>7</td>',
                'normal: asked', '<pre>hosts: [&lt;x&gt;]</pre>'):
            self.assertIn(text, page)
