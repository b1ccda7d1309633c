# SPDX-License-Identifier: Apache-2.0

"""Decisions on one request: its host, and the victims there."""
