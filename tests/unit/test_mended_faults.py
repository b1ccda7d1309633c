# SPDX-License-Identifier: Apache-2.0
"""The table of mended faults in CONTRIBUTING.rst is that of the code."""

import pathlib
import unittest

from tests.exploration import mended_faults

PATH = pathlib.Path(__file__).parents[2] / 'CONTRIBUTING.rst'


class TestMendedFaults(unittest.TestCase):

    def test_the_table_names_each(self):
        text = PATH.read_text()
        begin = text.index('.. mended faults\n')
        end = text.index('.. end of mended faults')
        self.assertEqual(f'.. mended faults\n\n{mended_faults.table()}\n',
                         text[begin:end])
