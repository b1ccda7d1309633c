# SPDX-License-Identifier: Apache-2.0
"""Horizon with our plugin, installed as doc/source/dashboard.rst has it."""

import pathlib
import shutil

from minicloud import layout as layouts

NAME = 'horizon'
PLUGIN = pathlib.Path(__file__).resolve().parents[2] / 'nova_preempt_dashboard'

_SETTINGS = '''\
import os

from openstack_dashboard.settings import HORIZON_CONFIG  # noqa: F401

DEBUG = False
ALLOWED_HOSTS = ['127.0.0.1', 'localhost']
SECRET_KEY = {key!r}
STATIC_ROOT = {static!r}
COMPRESS_OFFLINE = True
OPENSTACK_KEYSTONE_URL = {keystone!r}
SESSION_ENGINE = 'django.contrib.sessions.backends.file'
SESSION_FILE_PATH = {sessions!r}
CACHES = {{'default': {{
    'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}}}
# Passwords of the small cloud are the same for all.
HORIZON_CONFIG['password_validator'] = {{'regex': '.*', 'help_text': ''}}
'''


def environment(layout):
    """Return the environment in which Horizon finds its settings."""
    return {'PYTHONPATH': str(layout.etc / NAME),
            'DJANGO_SETTINGS_MODULE': 'openstack_dashboard.settings'}


def static(layout):
    return layout.data / NAME / 'static'


def write(layout):
    """Write the settings, and enable the plugin."""
    local = layout.etc / NAME / 'local'
    local.mkdir(parents=True, exist_ok=True)
    sessions = layout.data / NAME / 'sessions'
    sessions.mkdir(parents=True, exist_ok=True)
    (local / '__init__.py').touch()
    (local / 'local_settings.py').write_text(_SETTINGS.format(
        key=layouts.PASSWORD * 8, static=str(static(layout)),
        sessions=str(sessions), keystone=layout.url('keystone', '/v3')))
    site, = layout.venv.glob('lib/python*/site-packages/openstack_dashboard')
    for directory in ('enabled', 'local_settings.d'):
        for file in (PLUGIN / directory).glob('_*.py'):
            if file.name != '__init__.py':
                shutil.copy(file, site / 'local' / directory / file.name)
