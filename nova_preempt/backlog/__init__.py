# SPDX-License-Identifier: Apache-2.0
"""Requests that wait: what users ask for, and what is done about it."""
