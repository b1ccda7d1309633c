# SPDX-License-Identifier: Apache-2.0
"""The group "Preemption" under Admin."""

from django.utils.translation import gettext_lazy as _

PANEL_GROUP = 'admin_preemption'
PANEL_GROUP_NAME = _('Preemption')
PANEL_GROUP_DASHBOARD = 'admin'
