# SPDX-License-Identifier: Apache-2.0
"""The suite that stestr finds: selected tests with the selected manager."""

import os
import unittest

from nova_tests import installation

_STATE = installation.prepare()
if os.environ['NOVA_TESTS_MANAGER'] == 'ours':
    installation.install(_STATE)
    installation.tell_counts(os.environ['NOVA_TESTS_RESULTS'])


def load_tests(loader, standard_tests, pattern):
    """Return the tests of NOVA_TESTS_NAMES under their own names."""
    return unittest.TestSuite(
        loader.loadTestsFromNames(os.environ['NOVA_TESTS_NAMES'].split()))
