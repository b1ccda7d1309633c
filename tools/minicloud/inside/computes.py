# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Wait until so many computes are in Nova and in Placement.

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
