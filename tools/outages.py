# SPDX-License-Identifier: Apache-2.0
"""Preempt on a test cloud while its services go away and come back.

    python tools/outages.py --spot FLAVOR --normal FLAVOR --image IMAGE \\
        --verify 'nova-preempt-manage verify' OUTAGES.yaml

Never on a cloud with other people's servers: it fills the cloud with
preemptible servers of its own, boots normal ones and deletes all of them.
OUTAGES.yaml names what goes away, with the commands (of a shell) for that::

    placement:
      stop: systemctl kill -s STOP placement-api
      start: systemctl kill -s CONT placement-api
    scheduler:
      stop: systemctl kill -s KILL nova-scheduler
      start: systemctl start nova-scheduler

Each round boots one normal server; at a random moment, drawn from --seed,
one of these goes away for --length-s. However the boot ends, no more servers
may end than it needs, and --verify must exit with 0 some time later. Servers
that ended for one that did not become ACTIVE are counted: an outage after
their end can do that, and Nova may leave the server in BUILD for ever. Exits
with 1 if a round failed. Credentials are those of openstackclient (--os-... or
OS_...) of an administrator.
"""

import argparse
import collections
import dataclasses
import os
import random
import subprocess
import sys
import threading
import time

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading
import yaml

PREFIX = 'outages-'
POLL_S = 1
# As long as Nova may take to fail a request, and the engine to repair it.
PATIENCE_S = 300
# Deletions are repeated after so many seconds.
AGAIN_S = 30
COMPUTE_MICROVERSION = '2.90'


@dataclasses.dataclass
class Round:
    """Outcome of a round.

    :ivar faults: violations, as text
    """

    outage: str
    after_s: float
    status: str = ''
    took_s: float = 0
    ended: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)

    def __str__(self):
        return (f'{self.outage:12} after {self.after_s:5.1f} s: '
                f'{self.status} in {self.took_s:.0f} s, {self.ended} ended'
                + ''.join(f'\n    FAULT: {fault}' for fault in self.faults))


class Cloud:
    """The servers of this program on a cloud.

    :param compute: a keystoneauth1 adapter
    """

    def __init__(self, compute, image):
        self._compute = compute
        self._image = image

    def find_flavor(self, name):
        for flavor in _insist(lambda: self._compute.get(
                '/flavors/detail?is_public=None')).json()['flavors']:
            if name in (flavor['id'], flavor['name']):
                return flavor['id']
        raise SystemExit(f'no flavor {name}')

    def boot(self, name, flavor):
        """Request a server once; return its uuid, None if it is refused."""
        try:
            return self._compute.post('/servers', json={'server': {
                'name': PREFIX + name, 'flavorRef': flavor,
                'imageRef': self._image, 'networks': 'none',
            }}).json()['server']['id']
        except ks_exc.ClientException:
            return None

    def boot_many(self, name, flavor, number):
        """Request several servers at once."""
        self._compute.post('/servers', json={'server': {
            'name': PREFIX + name, 'flavorRef': flavor,
            'imageRef': self._image, 'networks': 'none',
            'min_count': number, 'max_count': number}})

    def servers(self):
        """Return {uuid: (name, status)} of the servers of this program."""
        found = _insist(lambda: self._compute.get(
            f'/servers/detail?name=^{PREFIX}')).json()['servers']
        return {server['id']: (server['name'], server['status'])
                for server in found}

    def wait(self, uuid, patience_s):
        """Wait until a server is ACTIVE, in ERROR or gone; return which."""
        until = time.monotonic() + patience_s
        while True:
            status = self.servers().get(uuid, ('', 'gone'))[1]
            if status in ('ACTIVE', 'ERROR', 'gone'):
                return status
            if time.monotonic() > until:
                return f'{status} for {patience_s:g} s'
            time.sleep(POLL_S)

    def delete(self, uuids):
        left = set(uuids)
        until = time.monotonic() + PATIENCE_S
        while left:
            # NOTE: repeated, as Nova's message to the host may be lost with
            # the message bus. A server that Nova no longer finds may still be
            # listed for ever.
            left = {uuid for uuid in left if _insist(
                lambda uuid=uuid: self._compute.delete(f'/servers/{uuid}'),
                gone=404)}
            again = time.monotonic() + AGAIN_S
            while (left := left & self.servers().keys()) and (
                    time.monotonic() < again):
                time.sleep(POLL_S)
            if left and time.monotonic() > until:
                raise SystemExit('servers do not go away')

    def fill(self, flavor):
        """Boot preemptible servers until no other one fits."""
        while True:
            uuid = self.boot('spot', flavor)
            status = 'refused' if uuid is None else self.wait(
                uuid, PATIENCE_S)
            if status != 'ACTIVE':
                break
        if status != 'ERROR':
            raise SystemExit(f'a preemptible server is {status}')
        self.delete([uuid for uuid, (_name, status)
                     in self.servers().items() if status == 'ERROR'])


class Rounds:
    """Runs rounds.

    :param outages: {name: {'stop': command, 'start': command}}
    :param verify: a command that exits with 0 if all agrees
    """

    def __init__(self, cloud, outages, args):
        self._cloud = cloud
        self._outages = outages
        self._args = args
        self._random = random.Random(args.seed)
        self._spot = cloud.find_flavor(args.spot)
        self._normal = cloud.find_flavor(args.normal)

    def play(self, name):
        self._cloud.fill(self._spot)
        before = self._cloud.servers()
        result = Round(name, self._random.uniform(0, self._args.within_s))
        outage = threading.Thread(target=self._go_away,
                                  args=(name, result))
        start = time.monotonic()
        outage.start()
        uuid = self._cloud.boot('normal', self._normal)
        outage.join()
        result.status = 'refused' if uuid is None else self._cloud.wait(
            uuid, self._args.boot_s)
        result.took_s = time.monotonic() - start
        result.faults += self._verified()
        left = self._cloud.servers()
        result.ended = sum(other not in left for other in before)
        needed = self._args.victims
        if result.ended != needed and (
                result.status == 'ACTIVE' or result.ended > needed):
            result.faults.append(f'{result.ended} ended, not {needed}')
        self._cloud.delete([uuid for uuid, (name, status) in left.items()
                            if name == PREFIX + 'normal'
                            or status != 'ACTIVE'])
        return result

    def _go_away(self, name, result):
        time.sleep(result.after_s)
        result.faults += self._run(self._outages[name]['stop'])
        time.sleep(self._args.length_s)
        result.faults += self._run(self._outages[name]['start'])

    @staticmethod
    def _run(command):
        """Run a command; return texts of failures."""
        status = subprocess.run(command, shell=True, check=False).returncode
        return [f'{command}: exit status {status}'] if status else []

    def _verified(self):
        """Run --verify until it succeeds; return texts of failures."""
        until = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(
                self._args.verify, shell=True, check=False, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode == 0:
                return []
            if time.monotonic() > until:
                return [f'verify: {line}'
                        for line in done.stdout.splitlines()[-5:]]
            time.sleep(POLL_S)

    def clean(self):
        self._cloud.delete(list(self._cloud.servers()))


def _insist(call, gone=None):
    """Return the result of call(), repeated until the service answers."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except (ks_exc.HttpServerError, ks_exc.ConnectFailure,
                ks_exc.DiscoveryFailure, ks_exc.RetriableConnectionFailure):
            if time.monotonic() > until:
                raise
            time.sleep(POLL_S)
        except ks_exc.HttpError as exc:
            if exc.http_status != gone:
                raise
            return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    loading.register_session_argparse_arguments(parser)
    loading.register_auth_argparse_arguments(
        parser, sys.argv[1:], default='password')
    parser.add_argument('outages', metavar='OUTAGES.yaml')
    parser.add_argument('--spot', required=True, metavar='FLAVOR')
    parser.add_argument('--normal', required=True, metavar='FLAVOR')
    parser.add_argument('--image', required=True, metavar='UUID')
    parser.add_argument('--victims', type=int, default=1, metavar='N',
                        help='number of servers that a normal server evicts '
                             '(1)')
    parser.add_argument('--verify', required=True, metavar='COMMAND',
                        help='command that runs nova-preempt-manage verify')
    parser.add_argument('--rounds', type=int, default=5, metavar='N',
                        help='rounds of each outage (5)')
    parser.add_argument('--within-s', type=float, default=10, metavar='S',
                        help='latest start of an outage after a boot (10)')
    parser.add_argument('--length-s', type=float, default=15, metavar='S',
                        help='duration of an outage (15)')
    parser.add_argument('--boot-s', type=float, default=300, metavar='S',
                        help='timeout of a boot (300)')
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    with open(args.outages) as file:
        outages = yaml.safe_load(file)
    auth = loading.load_auth_from_argparse_arguments(args)
    cloud = Cloud(adapter.Adapter(
        loading.load_session_from_argparse_arguments(args, auth=auth),
        service_type='compute', interface='public',
        region_name=os.environ.get('OS_REGION_NAME'),
        default_microversion=COMPUTE_MICROVERSION), args.image)
    rounds = Rounds(cloud, outages, args)
    statuses = collections.Counter()
    faults = in_vain = 0
    try:
        for _ in range(args.rounds):
            for name in outages:
                result = rounds.play(name)
                print(result, flush=True)
                statuses[result.status] += 1
                faults += bool(result.faults)
                in_vain += result.ended * (result.status != 'ACTIVE')
    finally:
        rounds.clean()
    print(f'{sum(statuses.values())} rounds, {faults} with faults, '
          f'{in_vain} servers evicted in vain; '
          + ', '.join(f'{number} {status}'
                      for status, number in sorted(statuses.items())))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
