# SPDX-License-Identifier: Apache-2.0
"""URLs of the panel of reservations."""

from django.urls import re_path

from nova_preempt_dashboard.content.reservations import views

_ID = r'^(?P<reservation_id>[0-9a-f-]{36})/'

urlpatterns = [
    re_path(r'^$', views.IndexView.as_view(), name='index'),
    re_path(r'^create/$', views.CreateView.as_view(), name='create'),
    re_path(f'{_ID}$', views.DetailView.as_view(), name='detail'),
    re_path(f'{_ID}update/$', views.UpdateView.as_view(), name='update'),
    re_path(f'{_ID}boot/$', views.BootView.as_view(), name='boot'),
]
