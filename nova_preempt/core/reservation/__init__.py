# SPDX-License-Identifier: Apache-2.0
"""Reservations: which hosts, from when, and what becomes of who is there."""
