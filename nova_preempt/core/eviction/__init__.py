# SPDX-License-Identifier: Apache-2.0
"""Controllers of evictions: of their steps, and of what follows them."""
