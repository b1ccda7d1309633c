# SPDX-License-Identifier: Apache-2.0
"""The panel Project > Preemption > Spot."""

PANEL = 'spot'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'preemption'
ADD_PANEL = 'nova_preempt_dashboard.content.panels.Spot'
