# SPDX-License-Identifier: Apache-2.0
"""Reproduces the evaluations of papers on the core's algorithms.

Each module has ``run(scale, seed, clock)``, which returns a
figures.PaperEvaluation: our figures beside those that were published.
"""
