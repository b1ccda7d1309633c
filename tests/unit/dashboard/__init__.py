# SPDX-License-Identifier: Apache-2.0
"""Tests of the parts of nova_preempt_dashboard that need no Django."""
