# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of pauses."""

from django.urls import re_path

from nova_preempt_dashboard.content.pauses import views

urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
    re_path(r'^(?P<what>[a-z]+)/pause/$', views.PauseView.as_view(),
            name='pause'),
]
