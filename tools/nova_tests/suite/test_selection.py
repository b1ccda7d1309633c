# SPDX-License-Identifier: Apache-2.0
"""What stestr finds: the selected tests, on the selected manager."""

import os
import unittest

from nova_tests import installation

_STATE = installation.prepare()
if os.environ['NOVA_TESTS_MANAGER'] == 'ours':
    installation.install(_STATE)
    installation.tell_counts(os.environ['NOVA_TESTS_RESULTS'])


def load_tests(loader, standard_tests, pattern):
    """Return the tests of NOVA_TESTS_NAMES, with the names that they have."""
    return unittest.TestSuite(
        loader.loadTestsFromNames(os.environ['NOVA_TESTS_NAMES'].split()))
