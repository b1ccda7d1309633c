# SPDX-License-Identifier: Apache-2.0
"""Classes of service: how long their servers ran, waited, and took to come."""

import datetime
from unittest import mock

from nova import objects
from nova.compute import power_state
from oslo_utils import timeutils
import prometheus_client

# Nova's fixtures do not let numpy be imported any more.
from nova_preempt.classes import class_queue_order  # noqa: F401 (see above)
from nova_preempt.cloud import instances
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.classes import server_clocks
from nova_preempt.db import server_uptimes
from tests.functional import base
from tests.functional import test_backlog

EPOCH = datetime.datetime(1970, 1, 1)
BRONZE = {'name': 'bronze', 'importance': '3', 'availability': '0.5',
          'open': 'true'}
SILVER = {'name': 'silver', 'importance': '2', 'availability': '0.9'}
SHELVED = {'preemptible:action': 'shelve', 'preemptible:restore': 'true'}


def metric(name, **labels):
    """The present value of one of class silver."""
    return prometheus_client.REGISTRY.get_sample_value(
        f'nova_preempt_class_{name}', {'class': 'silver', **labels})


class Looking:
    """Runs a periodic task of the engine every LOOK_S."""

    def look(self, engine=None):
        work, = (work for item in (engine or self.engine)._timed
                 for name, work, _ in item.tasks
                 if name == 'clocks of classes')
        self.assertEqual(10, work())
        return server_uptimes.find(self.db)

    def look_until_it_runs(self, server, engine=None):
        """Nova shows that a server is there before it says since when."""
        def runs():
            found = self.look(engine)
            return server in found and (
                found[server].clocks.kind
                is server_clocks.Kind.RUNNING) and found

        return self.wait_for(runs, f'{server} to be known to run')


class ClassesTestCase(Looking, base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.flags(group='classes', enabled=True, qos_class=[SILVER])
        # By the clock that Nova dates its records with.
        self.now = timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)
        self.silver = self.create_flavor(
            'silver', 1, 1024, 10, preemptible=True,
            **{'preemptible:class': 'silver', **SHELVED})
        self.add_hosts('host1')
        self.engine = self.start_engine()

    def times(self, server, found=None):
        """Seconds that it ran, waited, and was on its way."""
        now_us = (timeutils.utcnow() - EPOCH) // datetime.timedelta(
            microseconds=1)
        found = (found or server_uptimes.find(self.db))[server]
        times = found.clocks.at(now_us)
        return [value / 1e6 for value in (
            times.running_us, times.waiting_us, times.binding_us)]

    def boot_silver(self, name):
        server = self.boot(name, self.silver, host='host1')
        self.wait(server)
        self.look_until_it_runs(server)
        return server

    def evict(self, server):
        """A normal server takes its place; returns that."""
        big = self.boot('big', self.big)
        self.wait(big)
        self.wait_for(lambda: self.api.get_server(server)['status']
                      == 'SHELVED_OFFLOADED', f'{server} to be shelved')
        self.wait_consistent()
        return big

    def come_back(self, server, engine=None):
        def back():
            self.now = timeutils.utcnow().replace(
                tzinfo=datetime.timezone.utc)
            (engine or self.engine).run_once()
            return self.api.get_server(server)['status'] == 'ACTIVE'

        self.wait_for(back, f'{server} to be back')


class TestClocks(ClassesTestCase):

    def test_a_life(self):
        self.boot_normal('other')
        silver = self.boot_silver('silver')
        # Of no class, and so with no clock.
        found = self.look()
        self.assertEqual([silver], list(found))
        self.assertEqual('silver', found[silver].class_name)
        self.assertEqual(('silver', False), found[silver].kind)
        self.assertFalse(found[silver].clocks.has_gap)
        self.assertEqual({}, server_uptimes.overheads(self.db))


class TestPreempted(ClassesTestCase):

    def test_an_evicted_server_waits_and_comes_back(self):
        silver = self.boot_silver('silver')
        big = self.evict(silver)
        found = self.look()[silver].clocks
        self.assertEqual(server_clocks.Kind.EVICTED, found.kind)
        ran_s, waited_s, _ = self.times(silver)
        # Nobody is there who could look: the engine is away.
        self.delete(big)
        self.engine._leadership.close()
        later = self.times(silver)
        self.assertEqual(ran_s, later[0])
        self.assertGreater(later[1], waited_s)
        engine = self.start_engine()
        self.come_back(silver, engine)
        # What another engine has written is there before it has looked.
        self.assertEqual(found, server_uptimes.find(self.db)[silver].clocks)
        before = metric('return_seconds_count') or 0
        found = self.look_until_it_runs(silver, engine)[silver]
        self.assertEqual(before + 1, metric('return_seconds_count'))
        self.assertFalse(found.clocks.has_gap)
        times = found.clocks.mark.times
        self.assertEqual(
            times.binding_us, sum(server_uptimes.overheads(self.db).values())
            + self.first_binding_us(silver))
        self.assertGreater(times.waiting_us, later[1] * 1e6)
        # Looking again changes nothing, nor does a loss of all that is known.
        engine.parts.known.refresh()
        self.assertEqual(found.clocks, self.look(engine)[silver].clocks)
        self.assertEqual(before + 1, metric('return_seconds_count'))
        self.assertEqual(1, metric('servers', state='running'))
        self.assertEqual(0.9, metric('target_availability'))
        self.assertEqual(
            metric('availability') < 0.9, bool(metric('servers_below_target')))
        server_uptimes.forget(self.db, [silver])
        engine._leadership.close()
        engine = self.start_engine()
        self.assertEqual(found.clocks, self.look(engine)[silver].clocks)
        self.delete(silver)
        self.assertEqual({}, self.look(engine))

    def first_binding_us(self, server):
        """Return the build time of a server from Nova's API."""
        for action in self.api.api_get(
                f'/servers/{server}/os-instance-actions').body[
                'instanceActions']:
            if action['action'] == 'create':
                break
        event, = (item for item in self.api.api_get(
            f'/servers/{server}/os-instance-actions/{action["request_id"]}'
            ).body['instanceAction']['events']
            if item['event'] == 'compute__do_build_and_run_instance')
        start, end = (datetime.datetime.fromisoformat(event[name])
                      for name in ('start_time', 'finish_time'))
        return (end - start) // datetime.timedelta(microseconds=1)

    def test_a_server_shelved_by_its_owner_does_not_wait(self):
        silver = self.boot_silver('silver')
        self.api.post_server_action(silver, {'shelve': None})
        self.wait_for(lambda: self.api.get_server(silver)['status']
                      == 'SHELVED_OFFLOADED', 'it to be shelved')
        found = self.look()
        self.assertEqual(server_clocks.Kind.ASIDE, found[silver].clocks.kind)
        self.assertEqual(self.times(silver, found),
                         self.times(silver, found))

    def test_a_guest_that_shuts_down_keeps_its_place(self):
        """Nova stops the server without a user's request."""
        silver = self.boot_silver('silver')
        manager = self.computes['host1'].manager
        manager.driver.instances[silver].state = power_state.SHUTDOWN
        with self.cell_context() as context:
            manager._query_driver_power_state_and_sync(
                context, objects.Instance.get_by_uuid(context, silver))
        self.wait_for(lambda: self.api.get_server(silver)['status']
                      == 'SHUTOFF', 'it to be stopped')
        found = self.look()
        self.assertEqual(server_clocks.Kind.RUNNING, found[silver].clocks.kind)

    def test_no_room_to_come_back_to(self):
        silver = self.boot_silver('silver')
        self.evict(silver)
        self.api.post_server_action(silver, {'unshelve': None})

        def waits():
            found = self.look()[silver].clocks
            return found.kind is server_clocks.Kind.QUEUED and found

        found = self.wait_for(waits, 'it to find no host')
        self.assertFalse(found.has_gap)
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(silver)['status'])
        self.assertEqual({}, server_uptimes.overheads(self.db))

    def test_an_unreadable_cell_is_read_later(self):
        silver = self.boot_silver('silver')
        before = self.look()
        self.evict(silver)
        with mock.patch.object(instances, 'pages',
                               side_effect=OSError('no database')):
            self.assertEqual(before, self.look())
        lost = self.look()[silver].clocks
        self.assertEqual(server_clocks.Kind.EVICTED, lost.kind)
        self.assertGreater(lost.mark.since_us,
                           before[silver].clocks.mark.last_us)
        self.assertFalse(lost.has_gap)


class TestRequests(Looking, test_backlog.BacklogTestCase):

    def test_servers_are_of_the_class_of_their_request(self):
        self.flags(group='classes', enabled=True, qos_class=[BRONZE, SILVER])
        self.flags(group='backlog', order='qos')
        self.now = timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)
        self.engine._leadership.close()
        self.engine = self.start_engine()
        # One of the two waits, for there is room for two servers only.
        first = self.leave(self.spot, class_name='bronze')
        second = self.leave(self.spot, class_name='silver', count=2)
        normal = self.leave(self.small)
        found = self.step_until(normal, backlog_model.ACTIVE)
        self.step_until(first, backlog_model.ACTIVE)
        waiting = self.get(second)
        self.assertEqual((backlog_model.WAITING, 1), (waiting.state,
                                                      waiting.position))
        server, = self.get(first).servers
        known = self.look_until_it_runs(server.uuid)
        self.assertEqual({server.uuid: 'bronze'}, {
            uuid: item.class_name for uuid, item in known.items()})
        self.delete(found.servers[0].uuid)
        self.delete(server.uuid)
        self.assertEqual({}, self.look())
        self.step_until(second, backlog_model.ACTIVE)
        self.assertEqual(['silver'] * 2, [
            item.class_name for item in self.look().values()])
