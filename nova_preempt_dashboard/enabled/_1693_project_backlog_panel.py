# SPDX-License-Identifier: Apache-2.0
"""The panel Project > Preemption > Backlog."""

PANEL = 'backlog'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'preemption'
ADD_PANEL = 'nova_preempt_dashboard.content.panels.Backlog'
