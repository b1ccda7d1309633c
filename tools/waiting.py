# SPDX-License-Identifier: Apache-2.0
"""Measure boots while many others wait for victims.

    python tools/waiting.py --spot FLAVOR --normal FLAVOR --image IMAGE \\
        --full-zone ZONE --free-zone ZONE [--waiting 64] [--boots 20]

Never on a cloud with other people's servers: it fills the hosts of the zone
--full-zone with preemptible servers of its own, and boots --waiting normal
servers that evict them and wait for the notice of --spot, which has to be
long. Meanwhile servers boot, one after the other, in --free-zone, where one
must fit. Prints the times of such boots before and meanwhile, from the request
to ACTIVE, and deletes all of its servers. Credentials are those of
openstackclient (--os-... or OS_...) of an administrator. Each zone has to be
that of a host aggregate: Nova's default zone includes all hosts, which would
all be filled.
"""

import argparse
import os
import statistics
import sys
import time

from keystoneauth1 import adapter
from keystoneauth1 import loading
import outages

POLL_S = 0.05


class Cloud(outages.Cloud):
    """The servers of this program in one zone.

    :param compute: a keystoneauth1 adapter
    """

    def __init__(self, compute, image, zone):
        super().__init__(compute, image)
        self._zone = zone

    def boot(self, name, flavor):
        return self._compute.post('/servers', json={'server': {
            'name': outages.PREFIX + name, 'flavorRef': flavor,
            'imageRef': self._image, 'networks': 'none',
            'availability_zone': self._zone}}).json()['server']['id']

    def status(self, uuid):
        return self._compute.get(f'/servers/{uuid}').json()['server'][
            'status']


def measure(cloud, flavor, boots, patience_s):
    """Boot servers one after the other; return how many seconds each took."""
    times = []
    for _ in range(boots):
        start = time.monotonic()
        uuid = cloud.boot('measured', flavor)
        while (status := cloud.status(uuid)) == 'BUILD':
            if time.monotonic() - start > patience_s:
                break
            time.sleep(POLL_S)
        if status != 'ACTIVE':
            raise SystemExit(f'a server in the free zone is {status}')
        times.append(time.monotonic() - start)
        cloud.delete([uuid])
    return times


def run(full, free, args):
    spot, normal = (full.find_flavor(name)
                    for name in (args.spot, args.normal))
    full.fill(spot)
    before = measure(free, normal, args.boots, args.patience_s)
    waiting = [full.boot(f'waiting{number}', normal)
               for number in range(args.waiting)]
    time.sleep(args.settle_s)
    meanwhile = measure(free, normal, args.boots, args.patience_s)
    servers = full.servers()
    print(f'{args.waiting} requests, of which '
          f'{sum(servers[uuid][1] == "BUILD" for uuid in waiting)} still '
          'wait at the end and '
          f'{sum(servers[uuid][1] == "ERROR" for uuid in waiting)} were '
          'refused')
    for name, times in (('before', before), ('meanwhile', meanwhile)):
        print(f'  {name:10} median {statistics.median(times):6.2f} s, '
              f'max {max(times):6.2f} s')


def check_zones(compute, *zones):
    """Refuse zones that do not confine servers to hosts of an aggregate."""
    found = {item['availability_zone'] for item in compute.get(
        '/os-aggregates').json()['aggregates'] if item['hosts']}
    for zone in zones:
        if zone not in found:
            raise SystemExit(
                f'zone {zone} is not one of a host aggregate with hosts: '
                'its servers may be on any host')
    if len(set(zones)) < len(zones):
        raise SystemExit('the two zones have to be different')


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    loading.register_session_argparse_arguments(parser)
    loading.register_auth_argparse_arguments(
        parser, sys.argv[1:], default='password')
    for name, metavar in (('spot', 'FLAVOR'), ('normal', 'FLAVOR'),
                          ('image', 'UUID'), ('full-zone', 'ZONE'),
                          ('free-zone', 'ZONE')):
        parser.add_argument(f'--{name}', required=True, metavar=metavar)
    parser.add_argument('--waiting', type=int, default=64, metavar='N')
    parser.add_argument('--boots', type=int, default=20, metavar='N')
    parser.add_argument('--settle-s', type=float, default=10, metavar='S',
                        help='time for waiting requests to choose victims '
                             '(10)')
    parser.add_argument('--patience-s', type=float, default=300, metavar='S',
                        help='timeout of a boot (300)')
    args = parser.parse_args()
    auth = loading.load_auth_from_argparse_arguments(args)
    compute = adapter.Adapter(
        loading.load_session_from_argparse_arguments(args, auth=auth),
        service_type='compute', interface='public',
        region_name=os.environ.get('OS_REGION_NAME'),
        default_microversion=outages.COMPUTE_MICROVERSION)
    check_zones(compute, args.full_zone, args.free_zone)
    full = Cloud(compute, args.image, args.full_zone)
    free = Cloud(compute, args.image, args.free_zone)
    try:
        run(full, free, args)
    finally:
        full.delete(list(full.servers()))


if __name__ == '__main__':
    main()
