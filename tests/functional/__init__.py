# SPDX-License-Identifier: Apache-2.0
"""Functional tests, each on a cloud of its own."""

# Before anything of Nova: up to 2026.1 it prepares the process for eventlet.
import nova_preempt.embedded.embedded_cloud  # noqa: F401

# isort: split
import selectors
import socketserver

# 2025.2 has imported it by then, with a selector that stops all greenthreads.
socketserver._ServerSelector = selectors.DefaultSelector
