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
"""Hosts for one project for some time, from the asking to the end."""

from tests.cloud import base


class TestReservation(base.CloudTest):

    def setUp(self):
        super().setUp()
        for host in self.place.layout.computes:
            self._set_host(host, '--reservable')
            self.addCleanup(self._set_host, host, '--default-reservable')

    def _set_host(self, host, option):
        self.place.openstack('reservation', 'host', 'set', option, host)

    def test_a_reserved_host_is_emptied_used_and_given_back(self):
        spots = self.fill(self.ours, 'spot.half')
        asked = ('--quantity', '1', '--duration', '20m')
        preview = self._as_member('preview', *asked)
        self.assertEqual(20 * 60, preview['duration_s'], preview)
        reservation = self._as_member(
            'create', '--name', 'one', '--end-action', 'delete',
            *asked)['id']
        self.addCleanup(self._end, reservation)
        self.wait_until(
            lambda: self._shown(reservation)['status'] == 'active',
            'an active reservation')

        [host] = [item['name'] for item in self._shown(reservation)['hosts']]
        self.assertEqual([], self._names_on(host))
        self.assertEqual(2, len(spots.keys() - self.ours.servers().keys()))
        self._check_use(reservation, host)

        self._end(reservation)
        self.wait_until(
            lambda: self._shown(reservation)['released_at'],
            'the host given back')
        # The one with the hint has gone, and nobody keeps others off.
        self.assertEqual([], self._names_on(host))
        late = self.ours.boot('late', self.flavor('spot.half'))
        self.assertEqual('ACTIVE', self.ours.wait(late, base.PATIENCE_S))
        self.assertEqual(['outages-late'], self._names_on(host))

    def _check_use(self, reservation, host):
        other = self.ours.boot('other', self.flavor('normal.half'))
        self.assertEqual('ACTIVE', self.ours.wait(other, base.PATIENCE_S))
        self.assertEqual([], self._names_on(host))
        self.place.call(
            'openstack', '--os-cloud', base.MEMBER, 'server', 'create',
            '--flavor', 'normal.half', '--image', 'tiny', '--nic', 'none',
            '--hint', f'reservation={reservation}', 'outages-hinted')
        [hinted] = self.theirs.servers()
        self.assertEqual('ACTIVE', self.theirs.wait(hinted, base.PATIENCE_S))
        self.assertEqual(['outages-hinted'], self._names_on(host))

    def _as_member(self, *words):
        return self.place.openstack('reservation', *words, cloud=base.MEMBER)

    def _shown(self, reservation):
        return self.place.openstack('reservation', 'show', reservation)

    def _end(self, reservation):
        if self._shown(reservation)['status'] in ('pending', 'active',
                                                  'degraded'):
            self.place.call('openstack', '--os-cloud', base.MEMBER,
                            'reservation', 'delete', reservation)

    def _names_on(self, host):
        return [server.name for server in self.admin.compute.servers(
            all_projects=True, host=host)]
