# SPDX-License-Identifier: Apache-2.0
"""Traces of clouds and clusters, as events one after the other."""
