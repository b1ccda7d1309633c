# SPDX-License-Identifier: Apache-2.0
"""Properties of a server as Nova records it."""

import unittest

from nova_preempt.core.observed_server import ObservedServer


class TestIsDeleted(unittest.TestCase):

    def test_by_its_own_record(self):
        for expected, args, values in (
                (False, ('error', None), {}),
                (False, ('active', 'resize_prep'), {}),
                (True, ('active', 'deleting'), {}),
                (True, ('active', 'soft-deleting'), {}),
                (True, ('soft-delete', None), {}),
                (True, ('deleted', None), {}),
                (True, ('deleted', None), {'deleted': True})):
            self.assertIs(expected, ObservedServer(
                's', *args, 'h', **values).is_deleted, args)
