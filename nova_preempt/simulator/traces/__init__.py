# SPDX-License-Identifier: Apache-2.0
"""Readers, writers and generators of traces of clouds and clusters."""
