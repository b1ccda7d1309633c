# SPDX-License-Identifier: Apache-2.0

"""Decision rules: no I/O, no clock, no randomness, no import of Nova."""
