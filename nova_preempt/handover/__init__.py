# SPDX-License-Identifier: Apache-2.0
"""Carries out claimed decisions: evicts the victims, then hands their space
over, or rolls back.
"""
