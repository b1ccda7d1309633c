# SPDX-License-Identifier: Apache-2.0
"""The backlog: requests that wait for capacity, and their dispatch."""
