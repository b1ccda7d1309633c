# SPDX-License-Identifier: Apache-2.0
"""The panel Admin > Preemption > Energy."""

PANEL = 'preemption_energy'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'admin_preemption'
ADD_PANEL = 'nova_preempt_dashboard.content.panels.Energy'
