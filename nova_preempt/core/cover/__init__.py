# SPDX-License-Identifier: Apache-2.0

"""Exact search for the cheapest cover, a problem on integers.

Given items, each a key (a positive integer to be minimised in sum) and a row
(the amounts that the item frees of each missing class), find the subset with
the least sum of keys that frees at least the need in every class. This package
knows nothing of servers or hosts; use ``nova_preempt.core.victims``.
"""
