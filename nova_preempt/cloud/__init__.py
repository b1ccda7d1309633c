# SPDX-License-Identifier: Apache-2.0
"""Clients and readers of Nova, Placement, Keystone and their databases."""
