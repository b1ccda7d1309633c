# SPDX-License-Identifier: Apache-2.0
"""Decisions made again, more of them."""

from tests.functional import test_replay


class TestReplay(test_replay.TestReplay):

    explained = 130
    booted = 18
