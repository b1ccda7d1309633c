# SPDX-License-Identifier: Apache-2.0
"""A backlog, with more requests that wait."""

from tests.functional import test_backlog


class TestMany(test_backlog.TestMany):

    requests = 40
