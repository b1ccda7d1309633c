# SPDX-License-Identifier: Apache-2.0
"""The evaluations of the papers whose algorithms are in the core, again.

Each module has ``run(scale, seed, clock)``, which returns a
figures.PaperEvaluation: our figures beside those that were published.
"""
