# SPDX-License-Identifier: Apache-2.0
"""Print a tempest.conf for the cloud that OS_CLOUD names.

    OS_CLOUD=minicloud-admin python tools/tempest_conf.py WORKSPACE

WORKSPACE is the directory of tempest's locks and logs. The cloud is named by
an administrator's credentials and has fake computes, whose servers cannot be
reached: tests of consoles, isolated networks and snapshots are disabled. A
second image is made for tests that need two.
"""

import configparser
import pathlib
import sys

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
import openstack

# The newest microversion of Nova that tempest has schemas for.
MAX_MICROVERSION = '2.100'
FLAVORS = {'tempest.1': {'ram': 64, 'vcpus': 1, 'disk': 1},
           'tempest.2': {'ram': 128, 'vcpus': 1, 'disk': 1}}


def find_images(cloud):
    """Return the ids of two images."""
    found = list(cloud.image.images(status='active'))
    if len(found) == 1:
        found.append(cloud.image.create_image(
            'tempest', disk_format='raw', container_format='bare',
            visibility='public', data=b'\0' * 1024, wait=True))
    return [image.id for image in found[:2]]


def find_flavors(cloud):
    """Return the ids of two small flavors."""
    return [(cloud.compute.find_flavor(name)
             or cloud.compute.create_flavor(name=name, **values)).id
            for name, values in FLAVORS.items()]


def has(cloud, service_type):
    """Return whether the catalog has a service."""
    try:
        return bool(cloud.session.get_endpoint(
            service_type=service_type, region_name=cloud.config.region_name))
    except exceptions.EndpointNotFound:
        return False


def preemption_api(cloud):
    return adapter.Adapter(
        cloud.session, service_type='preemption', interface='public',
        region_name=cloud.config.region_name, raise_exc=False,
        additional_headers={'OpenStack-API-Version': 'preemption 1.1'})


def reserves(cloud):
    """Return whether reservations are enabled; make a host reservable."""
    api = preemption_api(cloud)
    # It is a 409 without hosts that can be reserved.
    if api.post('/v1/reservations/preview', json={
            'reservation': {'duration': 60}}).status_code not in (200, 409):
        return False
    hosts = api.get('/v1/hosts').json()['hosts']
    if hosts and not any(host['reservable'] for host in hosts):
        api.patch(f'/v1/hosts/{hosts[-1]["name"]}', raise_exc=True,
                  json={'host': {'reservable': True}})
    return True


def make(cloud, workspace):
    """Return {section: {option: value}}."""
    auth = cloud.config.get_auth_args()
    images, flavors = find_images(cloud), find_flavors(cloud)
    preemption = has(cloud, 'preemption')
    return {
        'DEFAULT': {'log_dir': workspace / 'logs'},
        'oslo_concurrency': {'lock_path': workspace / 'lock'},
        'auth': {'admin_username': auth['username'],
                 'admin_password': auth['password'],
                 'admin_project_name': auth['project_name'],
                 'admin_domain_name': auth.get('user_domain_name', 'Default'),
                 'use_dynamic_credentials': True,
                 'create_isolated_networks': False,
                 'tempest_roles': 'member'},
        'identity': {'auth_version': 'v3', 'uri_v3': auth['auth_url'],
                     'region': cloud.config.region_name,
                     'v3_endpoint_type': 'public'},
        'service_available': {
            'nova': True, 'glance': True, 'swift': False, 'horizon': False,
            'neutron': has(cloud, 'network'), 'cinder': has(cloud, 'volume'),
            'nova_preempt': preemption},
        'compute': {
            'image_ref': images[0], 'image_ref_alt': images[1],
            'flavor_ref': flavors[0], 'flavor_ref_alt': flavors[1],
            'build_interval': 1, 'build_timeout': 120,
            'max_microversion': MAX_MICROVERSION,
            'min_compute_nodes': len(list(cloud.compute.hypervisors()))},
        'compute-feature-enabled': {
            'vnc_console': False, 'console_output': False,
            'interface_attach': False, 'snapshot': False, 'rescue': False,
            'live_migration': False, 'attach_encrypted_volume': False},
        'validation': {'run_validation': False},
        'preemption-feature-enabled': {
            'reservation': preemption and reserves(cloud)},
    }


def main():
    # NOTE: tempest's [DEFAULT] has no inherited options.
    conf = configparser.RawConfigParser(default_section=None)
    workspace = pathlib.Path(sys.argv[1]).resolve()
    conf.read_dict({
        section: {name: str(value) for name, value in options.items()}
        for section, options in make(openstack.connect(), workspace).items()})
    conf.write(sys.stdout)


if __name__ == '__main__':
    main()
