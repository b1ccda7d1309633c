# SPDX-License-Identifier: Apache-2.0
"""Server groups that several requests of the backlog name."""

import collections

import nova.conf

from nova_preempt.cloud import nova_as_user
from nova_preempt.cloud import server_groups
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement

# Nova's fixtures do not let numpy and scipy be imported any more.
from nova_preempt.core.batch import batch_placement  # noqa: F401 (see above)
from nova_preempt.embedded import embedded_cloud
from tests.functional import test_backlog


class GroupsTestCase(test_backlog.BacklogTestCase):

    def setUp(self):
        super().setUp()
        self.flags(group='backlog', batch_mode='exact')
        self.add_hosts('host2')
        self.add_host('host3', 4, 4096, 40)
        self.engine = self.start_engine()

    def group(self, policy, most=None, project=test_backlog.PROJECT):
        """The id of a new group of the user."""
        user = self.user(project)
        group = {'name': policy, 'policy': policy}
        if most:
            group['rules'] = {'max_server_per_host': most}
        return user._call('POST', '/os-server-groups', '2.64', json={
            'server_group': group}).json()['server_group']['id']

    def user(self, project=test_backlog.PROJECT):
        trust = self.trusts.create('', project, test_backlog.USER, [])
        return nova_as_user.UserNova(
            self.trusts.session(trust), nova.conf.CONF, 60)

    def leave_in(self, group, **values):
        return self.leave(body={
            'server': {'name': 'x', 'imageRef': embedded_cloud.IMAGE,
                       'networks': 'none'},
            'os:scheduler_hints': {'group': group}}, **values)

    def hosts(self, uuids):
        """The hosts of requests of one server, once all of them run."""
        def all_run():
            self.step()
            return all(self.get(uuid).state == backlog_model.ACTIVE
                       for uuid in uuids)

        self.wait_for(all_run, 'all to run')
        return [self.with_tags(server.uuid)['OS-EXT-SRV-ATTR:host']
                for uuid in uuids for server in self.get(uuid).servers]

    def boots(self, uuids):
        return [len(self.get(uuid).boots) for uuid in uuids]


class TestGroups(GroupsTestCase):

    def test_groups_across_requests(self):
        near, far = self.group('affinity'), self.group('anti-affinity')
        together = [self.leave_in(near) for _ in range(3)]
        apart = [self.leave_in(far) for _ in range(3)]
        self.step()
        # All of them in one pass, and none in vain.
        self.assertEqual(6 * [1], self.boots([*together, *apart]))
        self.assertEqual(3 * ['host3'], self.hosts(together))
        self.assertEqual(['host1', 'host2', 'host3'],
                         sorted(self.hosts(apart)))
        self.assertEqual(6 * [1], self.boots([*together, *apart]))
        self.check_who_waits(near, far, together)
        self.check_others()
        self.wait_consistent()

    def check_who_waits(self, near, far, together):
        """Check that members wait for their group despite free space."""
        more = [self.leave_in(near), self.leave_in(far)]
        self.step()
        self.assertEqual(['group', 'group'], [
            self.get(uuid).waits_for['code'] for uuid in more])
        service, = self.api.get_services(binary='nova-compute', host='host3')
        for status, text in (('disabled', 'not in use'),
                             ('enabled', 'has no capacity')):
            self.api.put_service(service['id'], {'status': status})
            # One that looks at hosts anew.
            self.engine = self.start_engine()
            self.step()
            self.assertIn(text, self.get(more[0]).waits_for['text'])
        self.delete(self.get(together[0]).servers[0].uuid)
        self.assertEqual(['host3'], self.hosts(more[:1]))
        self.step()
        self.assertEqual([1, 0], self.boots(more))
        self.cancel(more[1])

    def check_others(self):
        """Check that groups of others and deleted groups get Nova's answer."""
        gone, others = self.group('affinity'), self.group(
            'affinity', project='e' * 32)
        uuids = [self.leave_in(group) for group in (gone, others)]
        self.user().delete_group('affinity')
        for uuid in uuids:
            found = self.step_until(uuid, backlog_model.FAILED)
            self.assertIn('could not be found', found.reason)

    def cancel(self, uuid):
        test_backlog.backlog_store.change(
            self.db, uuid, backlog_model.OPEN, self.at(),
            state=backlog_model.CANCELLED)

    def test_max_server_per_host(self):
        """The group has a limit per host and a running member."""
        group, soft = (self.group('anti-affinity', most=2),
                       self.group('soft-anti-affinity'))
        self.assertEqual(
            {group: ('anti-affinity', 2, test_backlog.PROJECT)},
            {uuid: (item.policy, item.max_server_per_host, item.project_id)
             for uuid, item in server_groups.find(
                 [group, soft], group_placement.STRICT).items()
             })
        self.assertEqual({}, server_groups.find([], group_placement.STRICT))
        first = self.boot_in(group)
        uuids = [self.leave_in(group, count=count) for count in (2, 2, 1)]
        self.step()
        self.assertEqual(3 * [1], self.boots(uuids))
        on = collections.Counter(self.hosts(uuids))
        on[self.with_tags(first)['OS-EXT-SRV-ATTR:host']] += 1
        self.assertEqual({'host1': 2, 'host2': 2, 'host3': 2}, on)
        self.leave_in(soft)
        start, = self.engine.backlog.plan()['starts']
        self.assertEqual({}, start['hosts'])
        self.assertIn('scheduler hints', start['reason'])

    def boot_in(self, group):
        """Boot a server outside of the backlog."""
        reply = self.user().create({'server': {
            'name': 'first', 'imageRef': embedded_cloud.IMAGE,
            'networks': 'none',
            'flavorRef': self.small}, 'os:scheduler_hints': {
                'group': group}}, '2.90')
        self.wait(reply.server_uuid)
        return reply.server_uuid
