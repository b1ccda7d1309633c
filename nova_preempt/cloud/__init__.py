# SPDX-License-Identifier: Apache-2.0
"""The one room that reads and calls Nova and Placement."""
