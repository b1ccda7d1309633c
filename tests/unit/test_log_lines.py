# SPDX-License-Identifier: Apache-2.0
"""The guide's tables of log lines and metrics are complete."""

import types
import unittest

from docutils import core
import prometheus_client

from tests import documents


class TestLogLines(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.extension = documents.extension('log_lines')

    def test_each_line_is_told_and_each_that_is_told_is_there(self):
        self.assertEqual(
            {line for _package, _level, line in self.extension.written()},
            set(self.extension.meanings()))

    def test_page(self):
        lines = {('engine', 'ERROR', 'A ...'), ('api', 'WARNING', 'B'),
                 ('engine', 'WARNING', 'C')}
        page = list(self.extension.page(
            lines, {'C': 'See C.', 'B': 'See B.', 'A ...': 'See A.'}))
        core.publish_doctree('\n'.join(page), settings_overrides={
            'report_level': 2, 'halt_level': 2})
        self.assertEqual(
            ['``api``', '     - ``B``', '     - See B.', '``engine``',
             '     - ``C``', '     - See C.', '     - ``A ...``',
             '     - See A.'],
            [line for line in page if '``' in line or 'See' in line])

    def test_how_lines_are_found(self):
        self.assertEqual(
            {('WARNING', 'Host ... is ...'), ('ERROR', 'A ... b'),
             ('WARNING', 'One ...'), ('WARNING', 'Two'),
             ('ERROR', 'Bad: ...')},
            self.extension.lines_of('\n'.join((
                "_TEXTS = {1: 'One %(x)s.', 2: 'Two'}",
                "LOG.warning('Host %(a)s ' 'is %(b).1f', {})",
                "LOG.exception('A %s b', 1)",
                'LOG.warning(_TEXTS[kind], {})',
                "LOG.log(logging.ERROR if bad else logging.INFO,",
                "        'Bad: %s%s', a, b)",
                "LOG.info('Nothing')",
                "LOG.log(logging.DEBUG, 'Nothing')"))))


class TestMetrics(unittest.TestCase):

    def test_page(self):
        registry = prometheus_client.CollectorRegistry()
        module = types.SimpleNamespace(
            A=prometheus_client.Counter(
                'a', 'Ends.', ['kind', 'by'], registry=registry),
            B=prometheus_client.Gauge('b', 'Hosts.', registry=registry), c=1)
        page = list(documents.extension('metrics_table').page(module))
        core.publish_doctree('\n'.join(page), settings_overrides={
            'report_level': 2, 'halt_level': 2})
        self.assertEqual(
            ['   * - ``a_total{kind,by}``', '     - counter', '     - Ends.',
             '   * - ``b``', '     - gauge', '     - Hosts.'], page[-6:])
