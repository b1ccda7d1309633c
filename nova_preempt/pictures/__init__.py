# SPDX-License-Identifier: Apache-2.0
"""Pictures of simulations, papers and reports in one style, and progress."""
