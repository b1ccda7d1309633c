# SPDX-License-Identifier: Apache-2.0

"""The decisions: no I/O, no clock, no randomness, nothing of Nova."""
