# SPDX-License-Identifier: Apache-2.0
"""Reservations, as operators and members make and use them."""

import datetime
import json
import time

from openstack import exceptions

from tests.cloud import base

# An end that takes longer has failed, so a notice is given this and half a
# minute earlier than it is long.
TIMEOUT_S = 20
LEAD_S = TIMEOUT_S + 30 + base.NOTICE_S
# For what a test does before the first notice, in commands and at least.
EARLY_COMMANDS = 5
EARLY_S = 25
# "To the second", on a machine that does other things, too.
LATE_S = 2
# What is paused, and does not happen meanwhile.
NOTHING_S = 10
RACK = 'r1'
HOST = 'compute1'


def _in(seconds):
    """A time as the command takes it."""
    return (datetime.datetime.now(datetime.timezone.utc)
            + datetime.timedelta(seconds=seconds)).strftime(
                '%Y-%m-%dT%H:%M:%SZ')


def _time(text):
    return datetime.datetime.fromisoformat(text)


class ReservationTest(base.CloudTest):

    OPTIONS = {
        'preemption': {'termination_timeout_s': TIMEOUT_S},
        'preemption_engine': {'interval_s': 2},
        'reservation': {'enabled': 'true'},
    }
    CONSTANTS = {'reservation.host_inventory.INTERVAL_S': 2}

    def setUp(self):
        super().setUp()
        self.wait_until(self._hosts, 'hosts that can be reserved')
        self.addCleanup(self._cancel)

    def _hosts(self):
        """Return whether the engine knows all hosts, all vacant."""
        try:
            found = list(self.admin.preemption.hosts())
        except exceptions.HttpException:
            # It has just been started.
            return False
        return sorted(host.name for host in found if host.vacant
                      and host.state == 'up') == self.place.layout.computes

    def _cancel(self):
        for item in self.member.preemption.reservations():
            if item.status in ('pending', 'active', 'degraded'):
                self.member.preemption.delete_reservation(item)

    def openstack(self, *words):
        """A command of the member."""
        return self.place.openstack(*words, cloud=base.MEMBER)

    def make_reservable(self):
        self._let_go_of(HOST)
        self.place.openstack(
            'reservation', 'host', 'set', '--reservable',
            '--property', f'rack={RACK}', HOST)

    def _let_go_of(self, host):
        self.addCleanup(self.admin.preemption.update_host, host,
                        reservable=None, extra={'rack': None})

    def make_all_reservable(self):
        for host in self.place.layout.computes:
            self._let_go_of(host)
            self.admin.preemption.update_host(
                host, reservable=True, extra={'rack': RACK})

    def reserve(self, *words):
        return self.openstack(
            'reservation', 'create', '--host-properties',
            f'["=", "$extra.rack", "{RACK}"]', '--end-action', 'delete',
            *words)

    def show(self, reservation):
        return self.member.preemption.get_reservation(reservation)

    def wait_for(self, reservation, status):
        return self.member.preemption.wait_for_reservation(
            reservation, status, interval=base.POLL_S, wait=base.PATIENCE_S)


class TestLife(ReservationTest):

    def test_from_its_grant_to_its_end(self):
        spots = self.fill(self.theirs, 'spot.half.notice')
        leaving = {uuid for uuid in spots if self.host_of(uuid) == HOST}
        self.assertEqual(2, len(leaving))
        self.make_reservable()
        began = time.monotonic()
        self.assertIn('extra.rack', [row['Name'] for row in self.openstack(
            'reservation', 'property', 'list')])
        # Which some machines take half a minute for.
        self.command_s = time.monotonic() - began

        start = _in(LEAD_S + max(EARLY_S, EARLY_COMMANDS * self.command_s))
        made = self.reserve('--name', 'night', '--start', start,
                            '--duration', '1h')
        self.assertEqual(('pending', start),
                         (made['status'], made['start_at']))
        # What hosts are called is nobody's business.
        self.assertNotIn(HOST, json.dumps(made))
        self.assertEqual({}, self._notices(spots))
        self._is_refused(made['id'], 'is not active yet')

        found = self.wait_until(
            lambda: self._notices(leaving).keys() == leaving
            and self._notices(spots), 'notices')
        self.assertEqual(leaving, found.keys())
        self.assertEqual({'reservation'},
                         {notice['reason'] for notice in found.values()})
        ready = self.wait_for(made['id'], 'active').ready_at
        late = _time(ready) - _time(start)
        self.assertLessEqual(late.total_seconds(), LATE_S)
        self.assertEqual(spots.keys() - leaving, self.theirs.servers().keys())
        own = self._use(made['id'], spots.keys() - leaving)
        self._end(made['id'], own)

    def _notices(self, uuids):
        """{uuid: notice} of those that have one."""
        texts = {uuid: self.metadata(uuid).get('preemption')
                 for uuid in uuids}
        return {uuid: json.loads(text) for uuid, text in texts.items()
                if text is not None}

    def _boot(self, cloud, *words):
        return self.place.openstack(
            'server', 'create', '--flavor', 'normal.half', '--image', 'tiny',
            '--nic', 'none', *words, 'outages-normal', cloud=cloud)['id']

    def _is_refused(self, reservation, why):
        server = self._boot(base.MEMBER, '--hint',
                            f'reservation={reservation}')
        self.assertEqual('ERROR', self.theirs.wait(server, base.PATIENCE_S))
        self.assertIn(why, self.find_server(server).fault['message'])
        self.theirs.delete([server])

    def _use(self, reservation, spots):
        """The server that is made in it; others stay outside."""
        own = self._boot(base.MEMBER, '--hint', f'reservation={reservation}')
        self.assertEqual('ACTIVE', self.theirs.wait(own, base.PATIENCE_S))
        self.assertEqual(HOST, self.host_of(own))
        # There is room left, but not for others: somebody has to end.
        other = self._boot(base.ADMIN)
        self.assertEqual('ACTIVE', self.ours.wait(other, base.PATIENCE_S))
        self.assertNotEqual(HOST, self.host_of(other))
        self.assertEqual(1, len(spots - self.theirs.servers().keys()))
        stranger = self._boot(base.ADMIN, '--hint',
                              f'reservation={reservation}')
        self.assertEqual('ERROR', self.ours.wait(stranger, base.PATIENCE_S))
        self.assertIn('reservation',
                      self.find_server(stranger).fault['message'].lower())
        # Nor has a member a look at whose host it is.
        self.assertIn('Policy does not allow', self.place.refused(
            'reservation', 'host', 'list'))
        return own

    def _end(self, reservation, own):
        self.openstack('reservation', 'set', '--end',
                       _in(10 + 2 * self.command_s), 'night')
        self.wait_for(reservation, 'ended')
        self.wait_until(lambda: self.show(reservation).released_at,
                        'a host that is free')
        self.assertNotIn(own, self.theirs.servers())
        self._is_refused(reservation, 'ended')
        # The host is everybody's again, and empty: nobody has to end.
        left = self.theirs.servers()
        other = self._boot(base.ADMIN)
        self.assertEqual('ACTIVE', self.ours.wait(other, base.PATIENCE_S))
        self.assertEqual((HOST, left),
                         (self.host_of(other), self.theirs.servers()))

    def test_nothing_begins_or_ends_while_it_is_paused(self):
        spots = self.fill(self.theirs, 'spot.half')
        self.make_reservable()
        self.pause('reservations')
        made = self.reserve('--duration', '1h')
        self._stays(made['id'], 'pending', spots)
        self.resume()
        self.wait_for(made['id'], 'active')
        self.assertEqual(2, len(spots.keys()
                                - self.theirs.servers().keys()))

        self.pause('reservations')
        self.place.call('openstack', '--os-cloud', base.MEMBER,
                        'reservation', 'delete', made['id'])
        self._stays(made['id'], 'active', self.theirs.servers())
        self.resume()
        self.wait_for(made['id'], 'ended')

    def _stays(self, reservation, status, servers):
        with self.assertRaises(AssertionError):
            self.wait_until(
                lambda: self.show(reservation).status != status
                or self.theirs.servers() != servers,
                'a change', patience_s=NOTHING_S)


class TestLimits(ReservationTest):

    def setUp(self):
        super().setUp()
        self.make_all_reservable()

    def test_requests_above_the_limits(self):
        for words, why in (
                (('--quantity', '5', '--duration', '1h'),
                 'max_hosts would be exceeded: 4 allowed, 0 used, 5 '),
                (('--duration', '8d'),
                 'max_duration_s would be exceeded: 604800 allowed'),
                (('--start', _in(100 * 86400), '--duration', '1h'),
                 'max_advance_s would be exceeded: 7776000 allowed')):
            text = self.place.refused('reservation', 'create', *words)
            self.assertIn(why, text)
        for words in (
                ('reservation', 'host', 'set', '--reservable', HOST),
                ('reservation', 'limits', 'set', '--max-hosts', '16',
                 self.member.current_project_id),
                ('preemption', 'pause', '--reason', 'mine')):
            self.assertIn('Policy does not allow', self.place.refused(*words))
        self.assertEqual([], self.openstack('reservation', 'list',
                                            '--status', 'pending'))

    def test_invalid_requests(self):
        for values, why in (
                ({'quantity': 0, 'duration': 3600}, 'quantity'),
                ({'quantity': 10 ** 30, 'duration': 3600}, 'quantity'),
                ({'duration': -1}, 'duration'),
                ({'duration': 3600, 'start_time': '1999-01-01T00:00:00Z'},
                 'start_time'),
                ({'duration': 3600, 'host_properties': ['>', '$rack']},
                 'host_properties'),
                ({'duration': 3600, 'host_properties': [
                    '=', '$extra.moon', '1']}, 'extra.moon')):
            with self.assertRaises(exceptions.BadRequestException) as caught:
                self.member.preemption.create_reservation(**values)
            self.assertIn(why, str(caught.exception))

    def test_a_project_with_limits_of_its_own(self):
        self.addCleanup(
            self.place.call, 'openstack', '--os-cloud', base.ADMIN,
            'reservation', 'limits', 'unset', 'member')
        self.place.openstack('reservation', 'limits', 'set',
                             '--max-reservations', '1', 'member')
        self.assertEqual(1, self.openstack(
            'reservation', 'limits', 'show')['limits']['max_reservations'])
        self.reserve('--duration', '1h')
        text = self.place.refused('reservation', 'create', '--duration', '1h')
        self.assertIn('max_reservations would be exceeded: 1 allowed, '
                      '1 used, 1 requested', text)
