# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of health."""

from django.urls import re_path

from nova_preempt_dashboard.content.health import views

urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
]
