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
