# SPDX-License-Identifier: Apache-2.0
"""Controllers of evictions, their roll-back, returns and retention."""
