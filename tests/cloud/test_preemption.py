# SPDX-License-Identifier: Apache-2.0
"""A full cloud and a normal server, as users and operators see it."""

import datetime
import json

from tests.cloud import base


class TestPreemption(base.CloudTest):

    def test_a_normal_server_starts_after_the_notice(self):
        spots = self.fill(self.theirs, 'spot.half.notice')
        server = self._boot_by_command()
        victim, notice = self.wait_until(
            lambda: self._notice(spots), 'a notice')
        self.assertEqual('delete', notice['action'])
        self.assertEqual('create', notice['reason'])
        deadline = datetime.datetime.fromisoformat(notice['deadline'])
        self.assertEqual('BUILD', self.ours.servers()[server][1])

        self.assertEqual('ACTIVE', self.ours.wait(server, base.PATIENCE_S))
        self.assertGreaterEqual(
            datetime.datetime.now(datetime.timezone.utc), deadline)
        self.assertEqual({victim}, spots.keys()
                         - self.theirs.servers().keys())
        self._check_records(server, victim, notice['preemption_id'])

    def _boot_by_command(self):
        return self.place.openstack(
            'server', 'create', '--flavor', 'normal.half', '--image', 'tiny',
            '--nic', 'none', 'outages-normal')['id']

    def _notice(self, uuids):
        """(uuid, notice) of a server that has one."""
        for uuid in uuids:
            text = self.metadata(uuid).get('preemption')
            if text is not None:
                return uuid, json.loads(text)
        return None

    def _check_records(self, server, victim, preemption):
        [row] = self.place.openstack(
            'preemption', 'list', '--server', server)
        self.assertEqual(
            (preemption, 'done', 'create', [victim]),
            (row['ID'], row['Status'], row['Operation'], row['Victims']))
        shown = self.place.openstack('preemption', 'show', preemption)
        self.assertEqual(server, shown['server']['id'])
        # The owner of the victim sees that, and nothing of who came.
        [row] = self.place.openstack(
            'preemption', 'list', '--victim', victim, cloud=base.MEMBER)
        self.assertEqual((preemption, [victim]), (row['ID'], row['Victims']))
        self.assertFalse(row['Server'])
        self.assertFalse(row['Host'])
        statistics = self.place.openstack(
            'preemption', 'statistics', 'list')
        self.assertIn('spot.half.notice',
                      [row['Flavor'] for row in statistics])

    def test_explain_evicts_no_server(self):
        spots = self.fill(self.theirs, 'spot.half')
        answer = self.place.openstack(
            'preemption', 'explain', 'normal.half')
        self.assertIn('victims', json.dumps(answer))
        self.assertEqual(spots, self.theirs.servers())

    def test_no_server_is_evicted_while_paused(self):
        spots = self.fill(self.theirs, 'spot.half')
        self.pause('preemption')
        [pause] = self.place.openstack('preemption', 'pause', 'list')
        self.assertEqual(('preemption', 'a test'),
                         (pause['What'], pause['Reason']))
        refused = self.ours.boot('normal', self.flavor('normal.half'))
        self.assertEqual('ERROR', self.ours.wait(refused, base.PATIENCE_S))
        self.assertEqual(spots, self.theirs.servers())

        self.resume()
        served = self.ours.boot('normal', self.flavor('normal.half'))
        self.assertEqual('ACTIVE', self.ours.wait(served, base.PATIENCE_S))
        self.assertEqual(1, len(spots.keys()
                                - self.theirs.servers().keys()))
