# SPDX-License-Identifier: Apache-2.0
"""Configuration files of Nova, and ours as in doc/source/install.rst."""

import pathlib

from minicloud import devstack
from minicloud import files
from minicloud import layout as layouts

FRAGMENT = (pathlib.Path(__file__).resolve().parents[2]
            / 'etc' / 'nova-preempt' / 'nova.conf.fragment')
USER = 'nova-preempt'
#: {process: the controller host for which it stands}, of several processes.
HOSTS = {f'{binary}-{number}': f'controller{number}'
         for binary in ('nova-preempt-scheduler', 'nova-preempt-engine')
         for number in (1, 2)}


def write(layout):
    etc = layout.etc / 'nova'
    if layout.settings.devstack:
        devstack.write(layout, etc / 'nova.conf', _with_databases(layout))
    else:
        _write_with_ours(layout, etc / 'nova.conf')
    files.save(etc / 'nova-cell1.conf', {
        **_common(layout, 'cell1'),
        'database': _database(layout, 'nova_cell1'),
    })
    # NOTE: computes have no database, and conductors of a cell not the API's,
    # which the check for a live migration would read.
    files.save(etc / 'nova-compute.conf', {
        **_common(layout, 'cell1'),
        'workarounds': {'disable_group_policy_check_upcall': 'true'},
    })
    for name, host in HOSTS.items():
        files.save(etc / f'{name}.conf', {
            'DEFAULT': {'host': host},
            # Each process needs a port of its own on 127.0.0.1.
            'preemption': {'metrics_port': layout.port(name)}})
    for name in layout.computes:
        _write_compute(layout, name)
    if not extra(layout).exists():
        extra(layout).write_text(
            '# Options under test: read last, by schedulers, engines and '
            'the preemption API.\n')
    if not constants(layout).exists():
        constants(layout).write_text('{}')


def extra(layout):
    return layout.etc / 'nova' / 'extra.conf'


def constants(layout):
    """Return the path of changed constants of schedulers and engines."""
    return layout.etc / 'nova' / 'constants.json'


def _with_databases(layout):
    return {
        **_common(layout, 'super'),
        'api_database': _database(layout, 'nova_api'),
        'database': _database(layout, 'nova_cell0'),
    }


def _write_with_ours(layout, path):
    files.save(path, {**_with_databases(layout),
                      'reservation': {'enabled': 'true'},
                      **_for_dashboard(layout)})
    connection = layout.database_url('nova_preempt', suffix='')
    text = FRAGMENT.read_text()
    for old, new in (
            # A user of its own, as in Nova's records.
            ('username = nova\n', f'username = {USER}\n'),
            ('http://controller:5000', layout.url('keystone')),
            ('#connection = ', f'connection = {connection}\n#'),
            # For reservations.
            (',PreemptibleFilter\n', ',PreemptibleFilter,ReservationFilter\n'),
    ):
        if old not in text:
            raise ValueError(f'{FRAGMENT} has no {old!r}')
        text = text.replace(old, new)
    path.write_text(path.read_text() + '\n' + text)


def _for_dashboard(layout):
    # Each page shows something then.
    if not layout.settings.dashboard:
        return {}
    return {'reservation': {'enabled': 'true', 'reservable_default': 'true'},
            'backlog': {'enabled': 'true'}}


def _common(layout, virtual_host):
    state = layout.data / 'nova'
    state.mkdir(exist_ok=True)
    credentials = files.credentials(layout, 'nova')
    return {
        'DEFAULT': {
            'use_stderr': 'true',
            'my_ip': layouts.ADDRESS,
            'state_path': state,
            'transport_url': layout.broker_url(virtual_host),
            'osapi_compute_workers': 1,
            'heal_instance_info_cache_interval': -1,
            'vif_plugging_is_fatal': 'false',
            'vif_plugging_timeout': 0,
        },
        'api': {'auth_strategy': 'keystone'},
        'conductor': {'workers': 1},
        'scheduler': {'workers': 1},
        'oslo_concurrency': {'lock_path': state / 'lock'},
        'glance': {'region_name': layouts.REGION},
        'vnc': {'enabled': 'false'},
        'quota': {'instances': -1, 'cores': -1, 'ram': -1},
        'keystone_authtoken': {
            **files.authtoken(layout, 'nova'),
            'service_token_roles': 'service',
            'service_token_roles_required': 'true',
        },
        'service_user': {**credentials, 'send_service_user_token': 'true'},
        'placement': credentials,
        'neutron': credentials,
        'cinder': credentials,
    }


def _database(layout, name):
    return {'connection': layout.database_url(name), **files.pool()}


def _write_compute(layout, name):
    # NOTE: a directory of its own, as the identity of the node is in it.
    state = layout.data / 'nova' / name
    state.mkdir(exist_ok=True)
    files.save(layout.etc / 'nova' / f'{name}.conf', {
        'DEFAULT': {
            'host': name,
            'compute_driver': 'minicloud.Hypervisor',
            'state_path': state,
            'cpu_allocation_ratio': '1.0',
            'ram_allocation_ratio': '1.0',
            'disk_allocation_ratio': '1.0',
            'reserved_host_memory_mb': 0,
        },
        'oslo_concurrency': {'lock_path': state / 'lock'},
    })
