# SPDX-License-Identifier: Apache-2.0
"""Deterministic exploration of the order of events.

The scheduler half, the hand-over and the engine run for real, on a cloud in
memory and on the real tables, as tasks in one process under a virtual clock.
A seed chooses which task goes on at each seam, which call fails, and which
process crashes: the same seed gives the same trace.
"""
