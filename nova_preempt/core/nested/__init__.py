# SPDX-License-Identifier: Apache-2.0

"""Requests that several providers of a host serve.

A host is a tree of resource providers, a request has several groups, and
Placement (its GET /allocation_candidates) defines which provider may serve
which group. ``provider_fit`` implements these rules; ``placements`` lists the
placements of a request, ``nested_victims`` finds the cheapest victims over all
of them.
"""
