# SPDX-License-Identifier: Apache-2.0
"""Services that die, stall or are away during preemptions.

One normal server is booted into a full cloud each time, and at some moment
something happens to a service for a while. However the boot ends, no more
servers may end than it needs, and all agrees afterwards. The moments are the
same each time, and others with another CLOUD_SEED in the environment.
"""

import argparse
import os
import sys

import outages

from tests.cloud import base

WITHIN_S = 4
LENGTH_S = 8
# Nova gives a call up after a minute. Who has waited for longer was forgotten
# with the service that had the request, and waits for ever.
BOOT_S = 150
ENDINGS = {'kill': 'start', 'stop': 'start', 'freeze': 'thaw'}
# Those of which there is one: what they do not do is not done.
KILLED = ('keystone', 'placement', 'glance', 'nova-api', 'nova-conductor',
          'nova-conductor-cell1', 'nova-preempt-scheduler-1',
          'nova-preempt-scheduler-2', 'nova-preempt-engine-1',
          'nova-preempt-engine-2', 'nova-preempt-api', 'compute1',
          'rabbitmq', 'mariadb')
STOPPED = ('rabbitmq', 'mariadb', 'nova-preempt-scheduler-1')
FROZEN = ('keystone', 'placement', 'nova-api', 'nova-conductor',
          'nova-conductor-cell1', 'nova-preempt-scheduler-1',
          'nova-preempt-engine-1', 'compute1', 'rabbitmq', 'mariadb')


class TestFaults(base.CloudTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(cls._clean_all)

    @classmethod
    def _clean_all(cls):
        cls.place.restart_computes()
        servers = cls.servers_of(cls.admin)
        servers.delete(list(servers.servers()))

    def _clean(self):
        """Leave a full cloud to the next one."""
        self.ours.delete([
            uuid for uuid, (name, status) in self.ours.servers().items()
            if (name, status) != (f'{outages.PREFIX}spot', 'ACTIVE')])

    def _play(self, what, name):
        if name not in self.place.services.names():
            self.skipTest(f'{name} is the machine\'s own')
        self.addCleanup(self._restore, name)
        command = self.place.minicloud_command
        outage = {'stop': command(what, name),
                  'start': command(ENDINGS[what], name)}
        rounds = outages.Rounds(self.ours, {name: outage}, argparse.Namespace(
            seed=f'{what} {name}{os.environ.get("CLOUD_SEED", "")}',
            spot='spot.half', normal='normal.half', victims=1,
            verify=self.place.verify_command(),
            within_s=WITHIN_S, length_s=LENGTH_S, boot_s=BOOT_S))
        result = rounds.play(name)
        sys.stderr.write(f'{what:6} {result}\n')
        self.assertEqual([], result.faults)

    def _restore(self, name):
        if self.place.services.state(name) == 'frozen':
            self.place.services.kill(name)
        self.place.services.start(name)


def _add(what, names):
    for name in names:
        def test(self, name=name):
            self._play(what, name)
        setattr(TestFaults, f'test_{what}_{name.replace("-", "_")}', test)


_add('kill', KILLED)
_add('stop', STOPPED)
_add('freeze', FROZEN)
