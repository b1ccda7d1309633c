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
"""What the guide tells of the log and of metrics, against the code."""

import pathlib
import re
import unittest

from docutils import core
import prometheus_client

from nova_preempt import metrics
from tests import documents

SOURCE = pathlib.Path(__file__).parents[2] / 'doc' / 'source'


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

    def test_each_is_told(self):
        """With its labels, in one of the tables."""
        wanted = set()
        for metric in vars(metrics).values():
            if isinstance(metric, prometheus_client.metrics.MetricWrapperBase):
                name = metric._name + (
                    '_total' if metric._type == 'counter' else '')
                labels = ','.join(metric._labelnames)
                wanted.add(f'{name}{{{labels}}}' if labels else name)
        found = [name for page in SOURCE.glob('*.rst') for name in re.findall(
            r'^   \* - ``(nova_preempt_\S+)``\n     - \S', page.read_text(),
            re.M)]
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(wanted, set(found))
