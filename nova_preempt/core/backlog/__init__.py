# SPDX-License-Identifier: Apache-2.0
"""Waiting requests: their order, capacity, starts and states."""
