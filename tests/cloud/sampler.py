# SPDX-License-Identifier: Apache-2.0
"""Samples Placement to find overcommitted providers."""

import contextlib
import threading

from keystoneauth1 import exceptions as ks_exc

PAUSE_S = 0.05
MICROVERSION = '1.39'


class Sampler(threading.Thread):
    """Samples until it is stopped, also during outages.

    :param placement: a keystoneauth1 adapter
    :ivar samples: how many times it has seen a provider
    :ivar faults: what must not be, as text
    """

    def __init__(self, placement):
        super().__init__(name='sampler', daemon=True)
        self._placement = placement
        self._capacities = {}
        self._ended = threading.Event()
        self.samples = 0
        self.faults = []

    def run(self):
        while not self._ended.wait(PAUSE_S):
            # It may be away, which is what some tests are about.
            with contextlib.suppress(ks_exc.ClientException,
                                     ConnectionError):
                self._look()

    def stop(self):
        """Stop after a last reading, which must succeed."""
        self._ended.set()
        self.join()
        self._look()

    def _look(self):
        for provider in self._get('/resource_providers')[
                'resource_providers']:
            path = f'/resource_providers/{provider["uuid"]}'
            # They do not change while a test runs.
            if path not in self._capacities:
                self._capacities[path] = {
                    name: (item['total'] - item['reserved'])
                    * item['allocation_ratio']
                    for name, item in self._get(
                        f'{path}/inventories')['inventories'].items()}
            capacities = self._capacities[path]
            for name, used in self._get(f'{path}/usages')['usages'].items():
                if used > capacities.get(name, 0):
                    self.faults.append(
                        f'{used} {name} of {capacities.get(name, 0):g} are '
                        f'given away on {provider["name"]}')
            self.samples += 1

    def _get(self, path):
        return self._placement.get(
            path, headers={'OpenStack-API-Version':
                           f'placement {MICROVERSION}'}).json()
