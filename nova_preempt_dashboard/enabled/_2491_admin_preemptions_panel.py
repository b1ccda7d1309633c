# SPDX-License-Identifier: Apache-2.0
"""The panel Admin > Preemption > Preemptions."""

PANEL = 'preemptions'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'admin_preemption'
ADD_PANEL = 'nova_preempt_dashboard.content.panels.Preemptions'
