# SPDX-License-Identifier: Apache-2.0
"""Render each page of the dashboard with the Django of this environment.

Usage: render_pages.py FILE DIRECTORY

FILE is what serve_api.py has written. Enables the plugin in this environment,
compresses the styles and scripts, and writes the pages to DIRECTORY. Exits
with 1 if a page fails or shows an error.
"""

import datetime
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys
import types

import django
from django.core import management

# Of this file, which must not hide packages.
sys.path.pop(0)

# Where no Keystone answers.
NOBODY = 'http://127.0.0.1:1/v3'
SETTINGS = '''\
ALLOWED_HOSTS = ['*']
CACHES = {{'default': {{
    'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}}}
COMPRESS_OFFLINE = True
DEBUG = False
OPENSTACK_KEYSTONE_URL = {nobody!r}
SECRET_KEY = 'secret' * 8
SESSION_ENGINE = 'django.contrib.sessions.backends.signed_cookies'
STATIC_ROOT = {static!r}
'''
PROJECT = ('spot/', 'spot/chances/', 'reservations/', 'reservations/create/',
           'reservations/{reservation}/', 'reservations/{reservation}/update/',
           'reservations/{reservation}/boot/', 'backlog/', 'backlog/create/',
           'backlog/{request}/')
ADMIN = ('preemptions/', 'preemptions/{decision}/', 'preemption_hosts/',
         'preemption_hosts/host/?name=host1', 'preemption_energy/',
         'preemption_pauses/', 'preemption_pauses/preemption/pause/',
         'preemption_health/')


def enable(directory):
    """Install the plugin as doc/source/dashboard.rst says."""
    site, plugin = (pathlib.Path(importlib.util.find_spec(name).origin).parent
                    for name in ('openstack_dashboard',
                                 'nova_preempt_dashboard'))
    for folder in ('enabled', 'local_settings.d'):
        for file in (plugin / folder).glob('_[0-9]*.py'):
            shutil.copy(file, site / 'local' / folder)
    (site / 'local' / 'local_settings.py').write_text(
        SETTINGS.format(nobody=NOBODY, static=str(directory / 'static')))
    os.environ['DJANGO_SETTINGS_MODULE'] = 'openstack_dashboard.settings'
    django.setup()
    management.call_command('collectstatic', interactive=False, verbosity=0)
    management.call_command('compress', force=True, verbosity=0)


def make_user(name, project, roles, urls):
    """Return a user of Horizon with a token of the API's tests."""
    from openstack_auth import user
    catalog = [{'type': kind, 'name': kind, 'endpoints': [
        {'interface': interface, 'region': 'R', 'region_id': 'R', 'url': url}
        for interface in ('public', 'internal', 'admin')]}
        for kind, url in {'identity': NOBODY, **urls}.items()]
    roles = [{'name': role} for role in roles]
    found = user.User(
        id=name, user=name, user_domain_id='default', project_id=project,
        project_name=project, roles=roles, service_catalog=catalog,
        enabled=True, services_region='R', authorized_tenants=[],
        token=types.SimpleNamespace(
            id=f'{name}:{project}', unscoped_token='', roles=roles,
            serviceCatalog=catalog, user={'id': name, 'name': name},
            project={'id': project, 'name': project}, user_domain_id='default',
            domain={'id': None, 'name': None}, is_federated=False,
            expires=datetime.datetime.now(datetime.timezone.utc)
            + datetime.timedelta(hours=1)))
    # Otherwise Keystone is asked.
    found._is_system_user = False
    return found


def problem(client, url, file):
    """Render a page into a file; return what is wrong with it, or ''."""
    try:
        answer = client.get(url)
    except Exception as exc:  # noqa: BLE001 (whatever a page raises)
        return repr(exc)
    text = answer.content.decode()
    file.write_text(text)
    if answer.status_code != 200:
        return f'status {answer.status_code}'
    # One is for browsers without JavaScript.
    shown = [each for each in re.findall(
        r'<div class="alert[^>]*alert-danger.*?</div>', text, re.S)
        if 'javascript-disabled' not in each]
    return ' '.join(re.sub('<[^>]+>', ' ', ''.join(shown)).split())


def main(file, directory):
    """Render all pages; return whether one has failed."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    known = json.loads(pathlib.Path(file).read_text())
    enable(directory)
    from django.contrib.auth import middleware
    from django.test import client as test_client
    from openstack_auth import utils
    from openstack_dashboard.api import keystone
    urls = {'preemption': known['preemption'],
            'compute': f'{known["others"]}/compute/v2.1',
            'image': f'{known["others"]}/image',
            'network': f'{known["others"]}/network'}
    member = make_user('u', 'p', ('member', 'reader'), urls)
    admin = make_user('admin', 'z', ('admin', 'member', 'reader'), urls)
    keystone.get_identity_api_version = lambda _request: (3, 14)
    versions = [importlib.metadata.version(name)
                for name in ('horizon', 'django', 'openstacksdk')]
    print('Horizon {}, Django {}, openstacksdk {}'.format(*versions))
    failed = 0
    for user, panel, pages in ((member, 'project', PROJECT),
                               (admin, 'admin', ADMIN)):
        utils.get_user = lambda _request, user=user: user
        middleware.get_user = utils.get_user
        for page in pages:
            url = f'/{panel}/{page.format(**known)}'
            wrong = problem(
                test_client.Client(), url, directory / (
                    re.sub(r'\W+', '_', f'{panel}/{page}') + '.html'))
            print(f'{url}: {wrong or "ok"}', flush=True)
            failed += bool(wrong)
    print(f'{failed} pages failed')
    return bool(failed)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
