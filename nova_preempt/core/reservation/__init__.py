# SPDX-License-Identifier: Apache-2.0
"""Reservations: their hosts and times, and the servers on these hosts."""
