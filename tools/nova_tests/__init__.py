# SPDX-License-Identifier: Apache-2.0
"""Runs Nova's own tests with our scheduler manager in the place of Nova's."""
