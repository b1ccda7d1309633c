# SPDX-License-Identifier: Apache-2.0
"""Runs Nova's own tests with our scheduler manager instead of Nova's."""
