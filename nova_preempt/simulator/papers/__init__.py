# SPDX-License-Identifier: Apache-2.0
"""Reproduces the evaluations of the papers whose algorithms the core has.

Each module has ``run(scale, seed, clock)``, which returns a
figures.Evaluation: our figures and the published figures.
"""
