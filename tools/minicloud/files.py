# SPDX-License-Identifier: Apache-2.0
"""Configuration files of services except Nova, and clouds.yaml."""

import json
import shutil

from minicloud import layout as layouts

# {cloud: (user, project)}
CLOUDS = {
    'minicloud-admin': ('admin', 'admin'),
    'minicloud-member': ('member', 'member'),
    'minicloud-service': ('nova', 'service'),
}


def write(layout):
    etc, data = layout.etc, layout.data
    for name in ('keystone', 'placement', 'glance', 'nova'):
        (etc / name).mkdir(exist_ok=True)
    for name in ('images', 'staging', 'tasks', 'lock'):
        (data / 'glance' / name).mkdir(parents=True, exist_ok=True)
    (data / 'keystone').mkdir(exist_ok=True)
    save(etc / 'keystone' / 'keystone.conf', _keystone(layout))
    save(etc / 'placement' / 'placement.conf', _placement(layout))
    save(etc / 'glance' / 'glance-api.conf', _glance(layout))
    # The packages have these as data files.
    for name in ('glance/glance-api-paste.ini', 'nova/api-paste.ini'):
        shutil.copy(layout.venv / 'etc' / name, etc / name)
    _write_clouds_yaml(layout)


def save(path, sections):
    """Write {section: {option: value}}, in the syntax of oslo.config."""
    path.write_text('\n'.join(
        f'[{section}]\n' + ''.join(
            f'{option} = {value}\n' for option, value in options.items())
        for section, options in sections.items()))


def credentials(layout, user):
    return {
        'auth_type': 'password',
        'auth_url': layout.url('keystone', '/v3'),
        'username': user,
        'password': layouts.PASSWORD,
        'project_name': 'service',
        'user_domain_name': 'Default',
        'project_domain_name': 'Default',
        'region_name': layouts.REGION,
    }


def authtoken(layout, user):
    return {
        'www_authenticate_uri': layout.url('keystone'),
        **credentials(layout, user),
    }


def pool():
    """Return a small connection pool: MariaDB's default limit is 151."""
    return {'max_pool_size': 3, 'max_overflow': 12}


def _keystone(layout):
    keys = layout.data / 'keystone'
    return {
        'DEFAULT': {'use_stderr': 'true'},
        'database': {'connection': layout.database_url('keystone'), **pool()},
        'token': {'provider': 'fernet', 'expiration': 86400},
        'fernet_tokens': {'key_repository': keys / 'fernet-keys'},
        'fernet_receipts': {'key_repository': keys / 'fernet-keys'},
        'credential': {'key_repository': keys / 'credential-keys'},
        # NOTE: else hashing a password takes a quarter of a second.
        'identity': {'password_hash_rounds': 4},
    }


def _placement(layout):
    return {
        'DEFAULT': {'use_stderr': 'true'},
        'placement_database': {
            'connection': layout.database_url('placement'), **pool()},
        'api': {'auth_strategy': 'keystone'},
        'keystone_authtoken': authtoken(layout, 'placement'),
        # See doc/source/install.rst.
        'placement': {'allocation_conflict_retry_count': 1},
    }


def _glance(layout):
    data = layout.data / 'glance'
    stores = {name: {'filesystem_store_datadir': data / directory}
              for name, directory in (('file', 'images'),
                                      ('os_glance_staging_store', 'staging'),
                                      ('os_glance_tasks_store', 'tasks'))}
    return {
        'DEFAULT': {
            'use_stderr': 'true',
            'enabled_backends': 'file:file',
            'worker_self_reference_url': layout.url('glance'),
        },
        'database': {'connection': layout.database_url('glance'), **pool()},
        'glance_store': {'default_backend': 'file'},
        **stores,
        'paste_deploy': {'flavor': 'keystone'},
        'oslo_concurrency': {'lock_path': data / 'lock'},
        'keystone_authtoken': authtoken(layout, 'glance'),
    }


def _write_clouds_yaml(layout):
    clouds = {
        cloud: {
            'auth': {
                'auth_url': layout.url('keystone', '/v3'),
                'username': user,
                'password': layouts.PASSWORD,
                'project_name': project,
                'user_domain_name': 'Default',
                'project_domain_name': 'Default',
            },
            'region_name': layouts.REGION,
            'identity_api_version': 3,
        } for cloud, (user, project) in CLOUDS.items()}
    # JSON is valid YAML.
    layout.clouds_yaml.write_text(
        json.dumps({'clouds': clouds}, indent=4) + '\n')
