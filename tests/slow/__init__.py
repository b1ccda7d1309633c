# SPDX-License-Identifier: Apache-2.0
"""What takes longer than each change can wait: "make test-slow"."""

# Before anything of Nova, as in the functional tests.
import nova_preempt.embedded.embedded_cloud  # noqa: F401
