# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of waiting requests."""

from django.urls import re_path

from nova_preempt_dashboard.content.backlog import views

urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
    re_path(r'^create/$', views.CreateView.as_view(), name='create'),
    re_path(r'^(?P<request_id>[0-9a-f-]{36})/$',
            views.DetailView.as_view(), name='detail'),
]
