# SPDX-License-Identifier: Apache-2.0
"""Requests that wait, on services that die."""

import openstack
from openstack import exceptions
import outages

from nova_preempt import sdk
from tests.cloud import base

REQUESTS = 40
ROOM = 10
PASSWORD = 'secret'
OVER = {'done', 'failed', 'cancelled', 'expired'}
# So often an engine is killed, the one and the other in turn.
KILLED_EVERY = 4


class BacklogTest(base.CloudTest):

    OPTIONS = {'backlog': {'enabled': 'true', 'pass_interval_s': 2,
                           'ask_timeout_s': 20}}

    def setUp(self):
        super().setUp()
        self.addCleanup(self._cancel)
        # The API has just been started.
        self.wait_until(self._answers, 'an API')

    def _answers(self):
        try:
            return list(self.member.preemption.backlog_requests()) or True
        except exceptions.HttpException:
            return False

    def _cancel(self):
        for item in self.requests():
            if item.status not in OVER:
                self.member.preemption.cancel_backlog_request(
                    item, servers=True)
        self.wait_until(lambda: not self.theirs.servers(), 'no servers')

    def requests(self):
        return list(self.member.preemption.backlog_requests())

    def leave(self, name, connection=None):
        """A request for one server of a tenth of a host."""
        body = {'server': {
            'name': outages.PREFIX + name, 'imageRef': self.image,
            'flavorRef': self.flavor('normal.tenth'), 'networks': 'none'}}
        return (connection or self.member).preemption.create_backlog_request(
            name=name, body=body, compute_version='2.52').id

    def fill_but(self, room):
        """Boot servers of another user until the given space is left."""
        total = 10 * self.place.layout.settings.computes - room
        self.ours.boot_many('other', self.flavor('normal.tenth'), total)
        self.wait_until(
            lambda: [status for _name, status
                     in self.ours.servers().values()] == ['ACTIVE'] * total,
            f'{total} servers')


class TestMany(BacklogTest):

    def test_forty_requests_with_space_for_ten(self):
        """An engine dies repeatedly: no server is created twice or lost."""
        self.fill_but(ROOM)
        asked = {self.leave(f'request-{number}') for number in
                 range(REQUESTS)}
        names, most, looks = {}, 0, 0
        while self._open(asked):
            looks += 1
            if not looks % KILLED_EVERY:
                engine = f'nova-preempt-engine-{1 + looks // 4 % 2}'
                self.place.services.kill(engine)
                self.place.services.start(engine)
            found = self.wait_until(
                lambda: self._active() or not self._open(asked),
                'a server that is known and active')
            most = max(most, len(self.theirs.servers()))
            if found is True:
                break
            for uuid, name in found.items():
                names.setdefault(name, set()).add(uuid)
            # Those that have come first leave first.
            self.theirs.delete(sorted(found)[:4])
        self.assertLessEqual(most, ROOM)
        self.assertEqual([1] * REQUESTS,
                         [len(uuids) for uuids in names.values()])

    def _open(self, asked):
        """The requests whose servers have not come and gone."""
        return asked - {item.id for item in self.requests()
                        if item.status == 'done'}

    def _active(self):
        """{uuid: name} of the servers that may be deleted.

        One that goes before an engine has seen it is started once more.
        """
        known = {server['id'] for item in self.requests()
                 for server in item.servers}
        return {uuid: name for uuid, (name, status)
                in self.theirs.servers().items()
                if status == 'ACTIVE' and uuid in known}


class TestUsers(BacklogTest):

    def test_a_role_that_is_taken_away(self):
        """The request fails with the reason."""
        identity = self.admin.identity
        project = self.member.current_project_id
        user = identity.create_user(name='leaver', password=PASSWORD,
                                    default_project_id=project)
        self.addCleanup(identity.delete_user, user)
        role = identity.find_role('member')
        identity.assign_project_role_to_user(project, user, role)
        leaver = sdk.add_to(openstack.connect(
            auth={'auth_url': self.place.layout.url('keystone', '/v3'),
                  'username': 'leaver', 'password': PASSWORD,
                  'user_domain_id': 'default', 'project_id': project},
            region_name=self.member.config.get_region_name(),
            interface='public', api_timeout=base.CALL_S))
        self.fill_but(0)
        uuid = self.leave('left', leaver)
        identity.unassign_project_role_from_user(project, user, role)
        self.ours.delete(list(self.ours.servers())[:1])
        api = self.member.preemption
        found = self.wait_until(
            lambda: (item := api.get_backlog_request(uuid)).status in OVER
            and item, 'an end')
        self.assertEqual('failed', found.status)
        self.assertIn('role', found.reason.lower())
        self.assertEqual({}, self.theirs.servers())
