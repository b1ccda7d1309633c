# SPDX-License-Identifier: Apache-2.0
"""The scheduler obeys the reservations in our database."""

import datetime
import uuid

import fixtures
from nova.conf import CONF
import sqlalchemy as sa

from nova_preempt import db as database
from nova_preempt.core.reservation import calendar as core
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservations
from nova_preempt.db import schema_upgrade
from nova_preempt.embedded import embedded_cloud
from nova_preempt.reservation import lease_cache
from tests.functional import base

HOUR_S = 3600


class ReservationTestCase(base.PreemptionTestCase):
    """Hosts of two slots, some of them reserved."""

    def setUp(self):
        super().setUp()
        self.flags(group='filter_scheduler', enabled_filters=[
            *CONF.filter_scheduler.enabled_filters, 'ReservationFilter'])
        # Nobody waits for the background.
        for name in ('REFRESH_S', 'MAX_AGE_S'):
            self.useFixture(fixtures.MockPatchObject(lease_cache, name,
                                                     HOUR_S))
        self.flags(group='preemption', notice_s=60, termination_timeout_s=60)
        self.restart_scheduler()
        self.mine = reservations.Reservations(
            self.db, lambda: self.now.replace(tzinfo=None))

    @property
    def known(self):
        return lease_cache.current(CONF)

    def reserve(self, *hosts, start_s=0, duration_s=HOUR_S, project=None):
        """Reserve hosts, from start_s from now on, and return the id."""
        start_s += int(self.now.timestamp())
        granted = self.mine.grant(
            reservation_model.Reservation(
                str(uuid.uuid4()), project or self.api_fixture.project_id,
                len(hosts), duration_s, self.now.replace(tzinfo=None),
                'shelve', 60),
            lambda calendar: core.FoundWindow(
                start_s, start_s + duration_s, hosts))
        if start_s <= self.now.timestamp():
            self.mine.update(granted.uuid, status=reservation_model.ACTIVE)
        self.known.refresh()
        return granted.uuid

    def end(self, reservation_id):
        self.mine.update(reservation_id, status=reservation_model.ENDED)
        self.known.refresh()

    def wait_a_while(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def boot_on(self, host, /, reservation_id=None, flavor=None, **kwargs):
        """Boot a server, which has to be on this host, and return its id."""
        server = self.boot('server', flavor or self.small,
                           hints=_hint(reservation_id), **kwargs)
        self.assertEqual(
            host, self.wait(server)['OS-EXT-SRV-ATTR:host'])
        return server

    def assert_refused(self, reason, reservation_id=None, **kwargs):
        """Check the reason that the owner of the server sees."""
        server = self.boot('refused', self.small,
                           hints=_hint(reservation_id), **kwargs)
        exc = self.assertRaises(embedded_cloud.CloudError, self.wait, server)
        self.assertIn('No valid host was found. ' + reason, str(exc))

    def host_of(self, server):
        return self.api.get_server(server)['OS-EXT-SRV-ATTR:host']


def _hint(reservation_id):
    return reservation_id and {'reservation': reservation_id}


class TestHint(ReservationTestCase):

    def test_reserved_hosts_are_used_with_the_hint_only(self):
        self.add_hosts('host1', 'host2', 'host3')
        ours = self.reserve('host2', 'host3')
        self.boot_on('host1', flavor=self.big)
        self.boot_in_vain()
        self.boot_in_vain(host='host2')
        # An administrator's own risk, as with every filter of Nova.
        self.delete(self.boot_on('host2', availability_zone='nova:host2'))
        self.assertEqual({'host2', 'host3'}, {
            self.host_of(self.wait(self.boot(
                f's{number}', self.big, hints=_hint(ours)))['id'])
            for number in range(2)})
        self.boot_in_vain(hints=_hint(ours))
        self.end(ours)

    def test_refusals_say_why(self):
        self.add_hosts('host1', 'host2')
        theirs = self.reserve('host1', project='somebody')
        soon = self.reserve('host2', start_s=HOUR_S)
        short = self.reserve('host2', duration_s=60)
        unknown = str(uuid.uuid4())
        for reservation_id in (theirs, unknown):
            self.assert_refused(
                f'There is no reservation {reservation_id!r} of this '
                'project.',
                reservation_id)
        self.assert_refused(
            f'Reservation {soon} is not active yet: it starts at '
            '2026-01-01T13:00:00Z.', soon)
        self.boot_on('host2', short)
        self.wait_a_while(60)
        ended = f'Reservation {short} has ended at 2026-01-01T12:01:00Z.'
        self.assert_refused(ended, short)
        self.end(short)
        self.assert_refused(ended, short)
        # Refused before anything is asked of hosts.
        self.assert_refused(ended, short, availability_zone='nova:host2')

    def test_a_new_reservation_is_found_at_once(self):
        self.add_hosts('host1', 'host2')
        # Somebody else has just made it: nobody refreshes here.
        now_s = int(self.now.timestamp())
        self.mine.grant(
            reservation_model.Reservation(
                'new', self.api_fixture.project_id, 1, HOUR_S,
                self.now.replace(tzinfo=None), 'shelve', 60),
            lambda calendar: core.FoundWindow(
                now_s, now_s + HOUR_S, ('host2',)))
        self.mine.update('new', status=reservation_model.ACTIVE)
        self.boot_on('host2', 'new')


class TestBeforeTheStart(ReservationTestCase):

    def test_free_until_later_first(self):
        self.add_hosts('host1', 'host2', 'host3')
        self.reserve('host1', start_s=3 * HOUR_S)
        self.reserve('host3', start_s=2 * HOUR_S)
        # However much room there is elsewhere.
        for host in ('host2', 'host1', 'host3'):
            server = self.boot_on(host, flavor=self.big)
        self.delete(server)
        # Preemptible servers until their notice, others an hour before.
        self.wait_a_while(HOUR_S)
        self.boot_in_vain()
        self.boot_on('host3', flavor=self.spot)
        self.wait_a_while(HOUR_S - 150)
        self.boot_in_vain(flavor=self.spot)


class TestPreemption(ReservationTestCase):

    def setUp(self):
        super().setUp()
        # Four end, and nothing here depends on when they know of it.
        self.flags(group='preemption', notice_s=0)
        self.restart_scheduler()

    def test_preemption_on_reserved_hosts_only(self):
        self.add_hosts('host1', 'host2')
        dear = [self.boot_spot(name, 'host1', uptime_s)
                for name, uptime_s in (('a', 1000), ('b', 2000))]
        cheap = [self.boot_spot(name, 'host2', uptime_s)
                 for name, uptime_s in (('c', 10), ('d', 20))]
        ours = self.reserve('host1')
        self.boot_on('host1', ours)
        self.assertEqual({dear[0]}, self.last_victims())
        self.boot_on('host2')
        self.assertEqual({cheap[0]}, self.last_victims())
        self.boot_on('host2')
        # There is a preemptible server on host1, but it is not for these.
        self.boot_in_vain()
        self.boot_on('host1', ours)
        self.boot_in_vain(hints=_hint(ours))
        self.assert_consistent()


class TestMoves(ReservationTestCase):

    def migrate(self, server):
        self.act(server, 'migrate')
        self.wait(server, 'VERIFY_RESIZE')
        self.act(server, 'confirmResize')
        self.wait(server)
        return self.host_of(server)

    def test_a_move_stays_within_the_reserved_hosts(self):
        self.add_hosts('host1', 'host2', 'host3')
        ours = self.reserve('host2', 'host3')
        server = self.boot('server', self.small, hints=_hint(ours))
        first = self.wait(server)['OS-EXT-SRV-ATTR:host']
        second, = {'host2', 'host3'} - {first}
        self.assertEqual(second, self.migrate(server))
        self.act(server, 'os-migrateLive',
                 {'host': None, 'block_migration': 'auto'})
        self.assertEqual(first, self.host_of(server))
        self.act(server, 'rebuild', {'imageRef': embedded_cloud.IMAGE})
        self.boot_on(second, ours, flavor=self.big)
        self.api.post_server_action(server, {'migrate': None},
                                    check_response_status=[202])
        self.wait_for(lambda: any(
            item['action'] == 'migrate' and self.has_failed(server, item)
            for item in self.api.get_instance_actions(server)), 'a refusal')
        self.assertEqual(first, self.host_of(server))

    def has_failed(self, server, action):
        events = self.api.api_get(
            f'/servers/{server}/os-instance-actions/'
            f'{action["request_id"]}').body['instanceAction']['events']
        return any(event['result'] == 'Error' for event in events)

    def test_a_server_outlives_its_reservation(self):
        self.add_hosts('host1', 'host2')
        ours = self.reserve('host1')
        shelved = self.boot_on('host1', ours)
        stays = self.boot_on('host1', ours)
        self.act(shelved, 'shelve')
        self.wait(shelved, 'SHELVED_OFFLOADED')
        self.end(ours)
        self.reserve('host1', project='somebody')
        self.api.post_server_action(shelved, {'unshelve': None})
        self.assertEqual('host2', self.wait(shelved)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual('host2', self.migrate(stays))


class TestServiceDown(ReservationTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1', 'host2')
        self.ours = self.reserve('host1')

    def break_it(self):
        """Break the tables and expire the cache."""
        self.elapsed_s = self.known._monotonic()
        self.known._monotonic = lambda: self.elapsed_s
        engine = self.db.engine
        with engine.begin() as connection:
            connection.execute(sa.text(
                'ALTER TABLE counters RENAME TO lost'))
        self.known.refresh()
        self.elapsed_s += lease_cache.MAX_AGE_S + 1

    def complaints(self):
        return self.stdlog.logger.output.count('lease service native does not')

    def test_fail_closed(self):
        self.break_it()
        self.boot_on('host2')
        self.boot_in_vain(host='host1')
        self.assert_refused('Reservations cannot be looked up', self.ours)
        self.boot_on('host2', flavor=self.spot)
        # One when it broke, one more after a minute.
        self.assertEqual(2, self.complaints())
        self.elapsed_s += 61
        self.boot_in_vain(host='host1')
        self.assertEqual(3, self.complaints())
        # One that has never seen them, and may go on.
        self.flags(group='reservation', on_unavailable='fail_open')
        self.restart_scheduler()
        self.boot_normal(host='host1')
        self.assert_refused('Reservations cannot be looked up', self.ours)


class TestStockScheduler(ReservationTestCase):
    """Nova's own manager, with our filter and weigher only."""

    db = None
    decisions = None

    def _install_scheduler(self):
        """Leave Nova's in its place."""
        # Nobody makes the tables: nova-preempt-manage would.
        self.db = database.Database(CONF)
        schema_upgrade.sync(self.db)
        self.decisions = database.Decisions(self.db)

    def test_filters(self):
        self.known.clock = lambda: self.now.timestamp()
        self.add_hosts('host1', 'host2')
        ours = self.reserve('host1')
        self.boot_on('host2', flavor=self.big)
        self.boot_in_vain(host='host1')
        self.boot_on('host1', ours)
        self.assert_refused('', str(uuid.uuid4()))
