# SPDX-License-Identifier: Apache-2.0
"""Tests of servers that pass on Nova and on the Nova in memory."""

from nova_preempt.cloud import instances

#: Methods of novaclient that a server which cannot do so refuses.
STATES = ('stop', 'start', 'shelve', 'shelve_offload', 'unshelve', 'unpause',
          'confirm_resize', 'live_migrate', 'set_meta')


class ServerTestCase:
    """Run by a test case with the attributes below, with two hosts.

    :ivar owner: novaclient's Client, of the project of all servers
    :ivar admin: the same of an administrator of another project
    :ivar nova: a nova_api.NovaAPI, of the administrator
    :ivar port: a placement_api.Placement
    :ivar project: the id of the project
    :ivar boot: given a number of vCPUs and perhaps a host, boots a server and
        returns its uuid at once
    :ivar held: a context manager within which something does not go on:
        schedule, spawn, snapshot, power_off, power_on, destroy, migrate
    :ivar shelving_fails: a context manager within which no image is made
    :ivar wait_for: waits until a function returns something true; returns it
    :ivar set_up: given a host's name and whether its compute service is up
    :ivar node: given a host's name, returns the uuid of its provider
    """

    def read(self, uuid):
        """Return the ObservedServer in its cell, a deleted one, too."""
        return instances.get_many([uuid], deleted=True)[0].get(uuid)

    def reach(self, uuid, vm_state, task_state=None):
        """Wait until a server is so; returns the ObservedServer."""
        def reached():
            found = self.read(uuid)
            return found and (found.vm_state, found.task_state) == (
                vm_state, task_state) and found
        return self.wait_for(reached)

    def gone(self, uuid):
        """Wait until a server is deleted, and has no allocations."""
        self.wait_for(lambda: (
            self.nova.get(uuid) is None and self.held_by(uuid) == {}
            and ((found := self.read(uuid)) is None or found.deleted)))

    def held_by(self, consumer):
        """Return {host: vCPUs} that a consumer has."""
        hosts = {self.node(name): name for name in ('host1', 'host2')}
        return {hosts[uuid]: item['resources']['VCPU'] for uuid, item
                in self.port.get_consumer(consumer).allocations.items()}

    def boot_active(self, vcpus=1, host='host1'):
        uuid = self.boot(vcpus, host)
        self.reach(uuid, 'active')
        return uuid

    def refusal(self, client, method, uuid, *args, **kwargs):
        """Return the code with which Nova refuses, 202 if it does not."""
        try:
            getattr(client.servers, method)(uuid, *args, **kwargs)
        except self.refusals as exc:
            return exc.code
        return 202

    def refusals_of(self, uuid, methods=STATES):
        """Return the methods that are refused with 409, all of them."""
        arguments = {'set_meta': ({'a': 'b'},)}
        keywords = {'live_migrate': {'host': None, 'block_migration': 'auto'}}
        found = {method: self.refusal(
            self.admin, method, uuid, *arguments.get(method, ()),
            **keywords.get(method, {})) for method in methods}
        self.assertEqual({409}, set(found.values()), found)

    def unwanted(self, uuid):
        return instances.find_unwanted([uuid]) == {uuid}


class BootTests(ServerTestCase):
    """Boots, and deletions of servers that are not built yet."""

    def test_boot(self):
        with self.held('schedule'):
            uuid = self.boot(1)
            self.assertEqual({uuid: None}, instances.find_cells([uuid]))
            self.assertEqual({uuid}, instances.requested(self.project))
            found = instances.find(uuids=[uuid]).servers[uuid]
            self.assertEqual(('building', 'scheduling', None), (
                found.vm_state, found.task_state, found.host))
            self.assertEqual(({}, {uuid: None}), instances.get_many([uuid]))
            found = self.nova.get(uuid)
            self.assertEqual(('BUILD', 'building', 'scheduling', None), (
                found.status, found.vm_state, found.task_state, found.host))
            self.refusals_of(uuid, [each for each in STATES
                                    if each not in ('stop', 'start')])
            for method in ('stop', 'start'):
                self.assertEqual(404, self.refusal(
                    self.admin, method, uuid))
            self.assertFalse(self.unwanted(uuid))
        found = self.reach(uuid, 'active')
        self.assertEqual(self.project, found.project_id)
        self.assertIsNotNone(found.launched_at)
        self.assertEqual({found.host: 1}, self.held_by(uuid))
        self.assertEqual(set(), instances.requested(self.project))
        self.assertEqual('ACTIVE', self.nova.get(uuid).status)

    def test_spawning(self):
        with self.held('spawn'):
            uuid = self.boot(1, 'host2')
            found = self.reach(uuid, 'building', 'spawning')
            self.assertEqual(('host2', None), (found.host, found.launched_at))
            self.assertEqual({'host2': 1}, self.held_by(uuid))
            self.refusals_of(uuid)
        self.reach(uuid, 'active')

    def test_no_valid_host(self):
        uuid = self.boot(9)
        found = self.reach(uuid, 'error')
        self.assertEqual((None, None), (found.host, found.launched_at))
        self.assertTrue(instances.find_cells([uuid])[uuid].is_cell0())
        self.assertTrue(self.unwanted(uuid))
        self.assertEqual({}, self.held_by(uuid))
        self.assertEqual('ERROR', self.nova.get(uuid).status)
        self.refusals_of(uuid)
        self.owner.servers.delete(uuid)
        self.gone(uuid)

    def test_delete_before_it_is_scheduled(self):
        with self.held('schedule'):
            uuid = self.boot(1)
            self.owner.servers.delete(uuid)
            self.assertEqual(404, self.refusal(self.admin, 'get', uuid))
            self.assertEqual(set(), instances.requested(self.project))
            self.wait_for(lambda: self.unwanted(uuid))
            self.assertEqual({uuid: None}, instances.find_cells([uuid]))
        # Then nothing is left of it.
        self.wait_for(lambda: instances.find_cells([uuid]) == {})
        self.gone(uuid)
        self.assertIsNone(self.read(uuid))

    def test_delete_before_no_host_is_found(self):
        with self.held('schedule'):
            uuid = self.boot(9)
            self.owner.servers.delete(uuid)
        self.wait_for(lambda: (found := self.read(uuid)) and found.deleted)
        self.assertTrue(instances.find_cells([uuid])[uuid].is_cell0())
        self.assertIsNone(self.nova.get(uuid))

    def test_delete_while_it_spawns(self):
        with self.held('spawn'):
            uuid = self.boot(1, 'host1')
            self.reach(uuid, 'building', 'spawning')
            self.owner.servers.delete(uuid)
        self.gone(uuid)
        self.assertTrue(self.unwanted(uuid))

    def test_unknown(self):
        for method in ('get', 'delete', 'force_delete', 'stop', 'lock'):
            self.assertEqual(404, self.refusal(
                self.admin, method, '11111111-1111-4111-8111-111111111111'))


class EndTests(ServerTestCase):
    """Tests of servers that end, and of their records."""

    def setUp(self):
        super().setUp()
        self.server = self.boot_active()

    def test_delete(self):
        with self.held('destroy'):
            self.owner.servers.delete(self.server)
            found = self.reach(self.server, 'active', 'deleting')
            self.assertEqual({'host1': 1}, self.held_by(self.server))
            self.wait_for(lambda: self.unwanted(self.server))
            self.refusals_of(self.server, [
                each for each in STATES if each != 'set_meta'])
            self.assertEqual(202, self.refusal(
                self.owner, 'set_meta', self.server, {'a': 'b'}))
            # Once more changes nothing.
            self.assertEqual(202, self.refusal(
                self.owner, 'delete', self.server))
            self.assertTrue(found.is_deleted)
        self.gone(self.server)
        found = self.read(self.server)
        self.assertEqual(('deleted', None, True), (
            found.vm_state, found.task_state, found.deleted))
        self.assertIsNotNone(found.ended_at)
        self.assertTrue(self.unwanted(self.server))
        self.assertEqual(404, self.refusal(self.owner, 'delete', self.server))
        self.assertEqual(404, self.refusal(self.owner, 'stop', self.server))

    def test_force_delete(self):
        self.admin.servers.force_delete(self.server)
        self.gone(self.server)

    def test_delete_while_it_is_locked(self):
        self.admin.servers.lock(self.server)
        self.assertEqual(409, self.refusal(self.owner, 'delete', self.server))
        self.nova.force_delete(self.server)
        self.gone(self.server)

    def test_delete_a_stopped_one(self):
        self.owner.servers.stop(self.server)
        self.reach(self.server, 'stopped')
        self.assertEqual({'host1': 1}, self.held_by(self.server))
        self.owner.servers.delete(self.server)
        self.gone(self.server)

    def test_delete_while_it_is_shelved(self):
        with self.held('snapshot'):
            self.owner.servers.shelve(self.server)
            self.reach(self.server, 'active', 'shelving')
            self.nova.force_delete(self.server)
        self.gone(self.server)

    def test_delete_an_offloaded_one(self):
        self.owner.servers.shelve(self.server)
        self.reach(self.server, 'shelved_offloaded')
        self.nova.delete(self.server)
        self.gone(self.server)

    def test_delete_on_a_host_that_is_down(self):
        """Nova's API deletes it without calling the compute service."""
        self.set_up('host1', False)
        with self.held('destroy'):
            self.owner.servers.delete(self.server)
            self.gone(self.server)
        self.assertTrue(self.unwanted(self.server))

    def changed(self, since, **filters):
        """Return {uuid: whether it is deleted} that have changed."""
        with self.cell_context() as context:
            return {found.uuid: found.deleted for found in instances.read(
                context, filters={'changes-since': since, **filters})}

    def test_changes(self):
        other = self.boot_active()
        begin = self.read(other).updated_at
        self.owner.servers.delete(self.server)
        self.gone(self.server)
        self.assertTrue(self.changed(begin)[self.server])
        self.assertIs(False, self.changed(begin)[other])
        self.assertNotIn(self.server, self.changed(begin, deleted=False))
        self.assertEqual({}, self.changed(begin.replace(year=2100)))
        with self.cell_context() as context:
            self.assertEqual([other], [each.uuid for each in instances.read(
                context, [self.server, other])])

    def test_pages_of_changes(self):
        with self.cell_context() as context:
            page, = instances.pages(context, instances.PRESENT, ['flavor'])
        self.assertEqual([self.server], [each.uuid for each in page])


class StateTests(ServerTestCase):
    """Stops, shelvings, locks and metadata."""

    def setUp(self):
        super().setUp()
        self.server = self.boot_active()

    def test_stop_and_start(self):
        self.refusals_of(self.server, ['start', 'unshelve', 'unpause',
                                       'shelve_offload', 'confirm_resize'])
        with self.held('power_off'):
            self.nova.stop(self.server)
            self.reach(self.server, 'active', 'powering-off')
            self.refusals_of(self.server, [
                each for each in STATES if each != 'set_meta'])
            self.owner.servers.set_meta(self.server, {'a': 'b'})
        self.reach(self.server, 'stopped')
        self.assertEqual('SHUTOFF', self.nova.get(self.server).status)
        self.refusals_of(self.server, ['stop', 'unshelve', 'unpause',
                                       'live_migrate', 'confirm_resize'])
        self.assertEqual({'host1': 1}, self.held_by(self.server))
        with self.held('power_on'):
            self.nova.start(self.server)
            self.reach(self.server, 'stopped', 'powering-on')
        self.reach(self.server, 'active')

    def test_pause(self):
        self.owner.servers.pause(self.server)
        self.reach(self.server, 'paused')
        self.refusals_of(self.server, ['stop', 'start', 'unshelve'])
        self.owner.servers.set_meta(self.server, {'a': 'b'})
        self.nova.unpause(self.server)
        self.reach(self.server, 'active')

    def test_shelve(self):
        with self.held('snapshot'):
            self.nova.shelve(self.server)
            self.reach(self.server, 'active', 'shelving')
            self.refusals_of(self.server, ['shelve', 'stop', 'unshelve'])
        found = self.reach(self.server, 'shelved_offloaded')
        self.wait_for(lambda: self.read(self.server).host is None)
        self.assertEqual({}, self.held_by(self.server))
        self.assertIsNotNone(found.launched_at)
        self.assertFalse(found.deleted)
        self.refusals_of(self.server, ['shelve', 'shelve_offload', 'stop',
                                       'start', 'live_migrate', 'set_meta'])
        self.assertFalse(self.unwanted(self.server))

    def test_shelve_that_fails(self):
        """It switches the guest off, which only the actions tell."""
        with self.shelving_fails():
            self.nova.shelve(self.server)
            self.reach(self.server, 'active')
            found = self.nova.get(self.server)
            self.assertTrue(self.nova.is_left_off(found))
            self.assertEqual(409, self.refusal(
                self.admin, 'start', self.server))
            self.nova.hard_reboot(self.server)
            self.reach(self.server, 'active')
            self.assertFalse(self.nova.is_left_off(found))

    def test_unshelve(self):
        self.nova.shelve(self.server)
        self.reach(self.server, 'shelved_offloaded')
        self.wait_for(lambda: self.read(self.server).host is None)
        with self.held('spawn'):
            self.nova.unshelve(self.server)
            self.reach(self.server, 'shelved_offloaded', 'spawning')
            host = self.wait_for(lambda: self.read(self.server).host)
            self.assertEqual({host: 1}, self.held_by(self.server))
            self.refusals_of(self.server, ['shelve', 'unshelve', 'stop'])
        self.reach(self.server, 'active')

    def test_unshelve_without_a_host(self):
        self.nova.shelve(self.server)
        self.reach(self.server, 'shelved_offloaded')
        for host in ('host1', 'host2'):
            self.boot_active(4, host)
        with self.held('schedule'):
            self.nova.unshelve(self.server)
            self.reach(self.server, 'shelved_offloaded', 'unshelving')
        found = self.reach(self.server, 'shelved_offloaded')
        self.assertIsNone(found.host)
        self.assertEqual({}, self.held_by(self.server))

    def locked(self):
        """Return who has locked a server, by its record and by Nova's API."""
        found = self.nova.get(self.server)
        self.assertEqual(self.read(self.server).locked_by, found.locked_by)
        return found.locked_by, found.locked_reason

    def test_locks(self):
        self.assertEqual(('', None), self.locked())
        self.owner.servers.lock(self.server, reason='mine')
        self.assertEqual(('owner', 'mine'), self.locked())
        for method in ('stop', 'delete', 'shelve', 'pause'):
            self.assertEqual(409, self.refusal(
                self.owner, method, self.server), method)
        self.assertEqual(409, self.refusal(
            self.owner, 'set_meta', self.server, {'a': 'b'}))
        self.admin.servers.set_meta(self.server, {'a': 'b'})
        # Nova keeps the owner's reason under an administrator's lock.
        self.admin.servers.lock(self.server)
        self.assertEqual(('admin', 'mine'), self.locked())
        self.nova.lock(self.server, 'ours')
        self.assertEqual(('admin', 'ours'), self.locked())
        # The owner's lock changes nothing now.
        self.owner.servers.lock(self.server, reason='again')
        self.assertEqual(('admin', 'ours'), self.locked())
        self.assertEqual(403, self.refusal(self.owner, 'unlock', self.server))
        self.nova.unlock(self.server)
        self.assertEqual(('', None), self.locked())
        self.owner.servers.unlock(self.server)

    def test_an_administrator_acts_on_a_locked_one(self):
        self.owner.servers.lock(self.server)
        self.nova.stop(self.server)
        self.reach(self.server, 'stopped')
        self.assertEqual(('owner', None), self.locked())
        self.assertEqual(409, self.refusal(self.owner, 'start', self.server))
        self.owner.servers.unlock(self.server)
        self.owner.servers.start(self.server)
        self.reach(self.server, 'active')

    def test_metadata(self):
        self.owner.servers.set_meta(self.server, {'a': 'b', 'c': 'd'})
        self.owner.servers.delete_meta(self.server, ['a'])
        self.assertEqual(404, self.refusal(
            self.owner, 'delete_meta', self.server, ['a']))
        self.owner.servers.set_meta(self.server, {'a': 'e'})
        self.assertEqual({'a': 'e', 'c': 'd'}, self.metadata(self.server))
        self.nova.clear_notice(self.server)

    def test_services(self):
        found, = (each for each in self.nova.list_compute_services()
                  if each['host'] == 'host1')
        self.assertEqual(('nova-compute', 'up', 'enabled', None, False), (
            found['binary'], found['state'], found['status'],
            found['disabled_reason'] or None, found['forced_down']))
        self.nova.disable_service(found['id'], 'why')
        found, = (each for each in self.nova.list_compute_services()
                  if each['host'] == 'host1')
        self.assertEqual(('disabled', 'why'), (
            found['status'], found['disabled_reason']))
        self.nova.enable_service(found['id'])
        found, = (each for each in self.nova.list_compute_services()
                  if each['host'] == 'host1')
        self.assertEqual('enabled', found['status'])
