# SPDX-License-Identifier: Apache-2.0
"""Create flavors and an image; boot a server and delete it.

Usage: first_server.py
"""

import sys
import time

import openstack
from openstack import exceptions

PATIENCE_S = 120
IMAGE = 'tiny'
# {name: (VCPUs, extra specs)}
FLAVORS = {
    'normal.1': (1, {}),
    'normal.2': (2, {}),
    'normal.5': (5, {}),
    'spot.1': (1, {'preemptible:enabled': 'true'}),
    'spot.2': (2, {'preemptible:enabled': 'true'}),
    # Without notice.
    'spot.2.now': (2, {'preemptible:enabled': 'true',
                       'preemptible:notice_s': '0'}),
}


def main():
    cloud = openstack.connect(cloud='minicloud-admin')
    make_flavors(cloud)
    image = cloud.image.find_image(IMAGE) or cloud.image.create_image(
        name=IMAGE, data=b'\0' * 1024, disk_format='raw',
        container_format='bare', visibility='public')
    start = time.monotonic()
    server = cloud.compute.create_server(
        name='first', image_id=image.id, networks='none',
        flavor_id=cloud.compute.find_flavor('normal.1').id)
    while server.status not in ('ACTIVE', 'ERROR'):
        if time.monotonic() - start > PATIENCE_S:
            break
        time.sleep(0.1)
        server = cloud.compute.get_server(server.id)
    took = time.monotonic() - start
    # NOTE: wait_for_delete() changes the server.
    status, fault = server.status, server.fault
    cloud.compute.delete_server(server)
    cloud.compute.wait_for_delete(server, interval=0.2)
    if status != 'ACTIVE':
        sys.exit(f'the first server is {status}: {fault}')
    print(f'the first server was ACTIVE in {took:.1f} s')


def make_flavors(cloud):
    compute = cloud.compute
    # This microversion refuses misspelt extra specs.
    compute.default_microversion = '2.86'
    for name, (vcpus, specs) in FLAVORS.items():
        try:
            flavor = compute.create_flavor(
                name=name, vcpus=vcpus, ram=vcpus * 512, disk=vcpus)
        except exceptions.ConflictException:
            continue
        if specs:
            compute.create_flavor_extra_specs(flavor, specs)


if __name__ == '__main__':
    main()
