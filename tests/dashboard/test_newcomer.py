# SPDX-License-Identifier: Apache-2.0
"""A newcomer who has never read the guide uses the dashboard alone."""

import time

from tests.dashboard import base
from tests.dashboard import scene

#: The promise of the guide.
MINUTE_S = 60


class TestNewcomer(base.TestCase):

    def test_reserves_a_host_and_boots_on_it(self):
        scene.Scene(self.member).clean()
        self.addCleanup(scene.Scene(self.member).clean)
        start = time.monotonic()
        self.browser.get(self.url('/project/'))
        # Each press is of words that the page of then shows.
        self.press('Preemption')
        self.press('Reservations')
        self.press('Reserve Hosts')
        self.fill('Name', 'newcomer')
        self.press('Reserve')
        self.wait_text('Active: boot servers on it', MINUTE_S)
        self.press('Boot Servers on It')
        self.fill('Name of the servers', 'newcomer-server')
        self.fill('Flavor', 'normal.1')
        self.fill('Image', 'tiny')
        self.fill('Network', 'None')
        self.picture('boot')
        self.press('Boot')
        self.wait_text('newcomer-server')
        self.assertLess(time.monotonic() - start, MINUTE_S)
        reservation = next(self.member.preemption.reservations(
            name='newcomer', status='active'))
        server = self.wait(lambda: next(
            (server for server in self.member.compute.servers()
             if server.name == 'newcomer-server'
             and server.status == 'ACTIVE'), None))
        self.assertIn(server.host_id, [
            host['host_id'] for host in reservation.hosts])
