# SPDX-License-Identifier: Apache-2.0

"""The exact search behind ``victims``: a covering problem on integers.

Given items, each a key (a positive integer to be minimised in sum) and a
row (what the item frees of each missing class), find the subset with the
least sum of keys that frees at least the need in every class. This package
knows nothing of servers or hosts; use ``nova_preempt.core.victims``.
"""
