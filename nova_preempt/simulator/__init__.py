# SPDX-License-Identifier: Apache-2.0

"""Discrete-event simulation of a cloud in which the core decides."""
