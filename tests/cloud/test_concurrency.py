# SPDX-License-Identifier: Apache-2.0
"""Two schedulers, and many requests at once."""

import concurrent.futures

from tests.cloud import base

BOOTS = 20
AT_ONCE = 10


class TestConcurrency(base.CloudTest):

    def test_twenty_boots_into_a_full_cloud(self):
        """Each evicts one server, and no other is evicted."""
        spots = self._fill_with_tenths()
        flavor = self.flavor('normal.tenth')
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            uuids = list(pool.map(
                lambda number: self.ours.boot(f'normal{number}', flavor),
                range(BOOTS)))
            statuses = list(pool.map(
                lambda uuid: self.ours.wait(uuid, base.PATIENCE_S), uuids))
        served = statuses.count('ACTIVE')
        left = self.theirs.servers()
        ended = spots.keys() - left.keys()
        self.assertEqual(BOOTS, served, statuses)
        self.assertEqual(BOOTS, len(ended))
        # Both have worked.
        for number in (1, 2):
            log = (self.place.layout.logs
                   / f'nova-preempt-scheduler-{number}.log')
            self.assertIn('Preemption ', log.read_text())

    def _fill_with_tenths(self):
        """Fill the cloud with requests for many servers."""
        total = 10 * self.place.layout.settings.computes
        self.theirs.boot_many('spot', self.flavor('spot.tenth'), total)
        return self.wait_until(
            lambda: self._all_active(total), f'{total} servers')

    def _all_active(self, total):
        found = self.theirs.servers()
        states = [status for _name, status in found.values()]
        self.assertNotIn('ERROR', states)
        return found if states == ['ACTIVE'] * total else None
