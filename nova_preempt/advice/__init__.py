# SPDX-License-Identifier: Apache-2.0
"""Tells projects how likely evictions are: rates, recommendations to leave."""
