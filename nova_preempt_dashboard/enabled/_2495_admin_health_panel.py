# SPDX-License-Identifier: Apache-2.0
"""The panel Admin > Preemption > Health."""

PANEL = 'preemption_health'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'admin_preemption'
ADD_PANEL = 'nova_preempt_dashboard.content.panels.Health'
