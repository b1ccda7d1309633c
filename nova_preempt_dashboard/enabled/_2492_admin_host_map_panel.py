# SPDX-License-Identifier: Apache-2.0
"""The panel Admin > Preemption > Host Map."""

PANEL = 'preemption_hosts'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'admin_preemption'
ADD_PANEL = 'nova_preempt_dashboard.content.panels.HostMap'
