# SPDX-License-Identifier: Apache-2.0
"""The group "Preemption" under Project, and what all panels share."""

from django.utils.translation import gettext_lazy as _

from nova_preempt_dashboard import api

PANEL_GROUP = 'preemption'
PANEL_GROUP_NAME = _('Preemption')
PANEL_GROUP_DASHBOARD = 'project'

ADD_INSTALLED_APPS = ['nova_preempt_dashboard']
ADD_EXCEPTIONS = {
    'recoverable': (api.RequestFailed,),
    'unauthorized': (api.SignedOut,),
}
ADD_SCSS_FILES = ['nova_preempt_dashboard/scss/preemption.scss']
ADD_JS_FILES = ['nova_preempt_dashboard/js/countdown.js',
                'nova_preempt_dashboard/js/polling.js']
