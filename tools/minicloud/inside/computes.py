# SPDX-License-Identifier: Apache-2.0
"""Wait until a number of computes is up in Nova and in Placement.

Usage: computes.py NUMBER
"""

import sys
import time

import openstack

PATIENCE_S = 300


def main():
    number = int(sys.argv[1])
    cloud = openstack.connect(cloud='minicloud-admin')
    until = time.monotonic() + PATIENCE_S
    while True:
        services = [service for service in cloud.compute.services(
            binary='nova-compute') if service.state == 'up']
        providers = list(cloud.placement.resource_providers())
        if len(services) >= number and len(providers) >= number:
            return
        if time.monotonic() > until:
            sys.exit(f'{len(services)} computes of {number} are up, '
                     f'{len(providers)} have a resource provider')
        time.sleep(0.2)


if __name__ == '__main__':
    main()
