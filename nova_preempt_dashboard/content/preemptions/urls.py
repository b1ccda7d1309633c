# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of preemptions."""

from django.urls import re_path

from nova_preempt_dashboard.content.preemptions import views

urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
    re_path(r'^(?P<preemption_id>[0-9a-f-]{36})/$',
            views.DetailView.as_view(), name='detail'),
]
