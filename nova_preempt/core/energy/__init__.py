# SPDX-License-Identifier: Apache-2.0
"""Energy: decisions to power hosts off and on."""
