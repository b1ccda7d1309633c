# SPDX-License-Identifier: Apache-2.0

"""Clouds that exist in memory only, in which the same decisions are made."""
