# SPDX-License-Identifier: Apache-2.0
"""Tests that take too long for each change: "make test-slow"."""

# Before anything of Nova, as in the functional tests.
import nova_preempt.embedded.embedded_cloud  # noqa: F401
