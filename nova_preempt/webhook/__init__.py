# SPDX-License-Identifier: Apache-2.0
"""Calls the webhooks of projects, as nova-preempt-webhook and the API do."""
