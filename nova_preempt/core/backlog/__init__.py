# SPDX-License-Identifier: Apache-2.0
"""Energy: what is decided of hosts that are powered off and on."""
