# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of preemptible servers."""

from django.urls import re_path

from nova_preempt_dashboard.content.spot import views

urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
    re_path(r'^chances/$', views.ChancesView.as_view(), name='chances'),
]
