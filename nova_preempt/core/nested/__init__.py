# SPDX-License-Identifier: Apache-2.0

"""Requests that are served by several providers of a host.

A host is a tree of resource providers, a request several groups, and
Placement (its GET /allocation_candidates) says which group may be on which
provider. ``tree`` knows these rules; ``placements`` lists the ways to place a
request, ``victims`` finds the cheapest servers to give way over all of them.
"""
