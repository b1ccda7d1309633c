# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of hosts."""

from django.urls import re_path

from nova_preempt_dashboard.content.host_map import views

# In the query, since names of hosts may be unfit for a path.
urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
    re_path(r'^host/$', views.HostView.as_view(), name='host'),
]
