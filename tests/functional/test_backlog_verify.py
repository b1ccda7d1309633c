# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage verify, where there are requests that wait."""

import contextlib
import io
import json
from unittest import mock

import fixtures
from oslo_utils import uuidutils

from nova_preempt.cmd import manage
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import trust_lifetime
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions
from tests.functional import test_backlog
from tests.functional.test_backlog import PROJECT
from tests.functional.test_backlog import USER


class TestVerify(test_backlog.BacklogTestCase):

    def setUp(self):
        super().setUp()
        # Nova's fixtures have read the options and opened the databases.
        for name, value in (
                ('nova_preempt.cloud.nova_conf.read', mock.Mock()),
                ('nova_preempt.cmd.verify_consistency.keystone_trusts.Trusts',
                 lambda conf: self.trusts),
                ('nova_preempt.cmd.verify_consistency.timeutils',
                 mock.Mock(utcnow=self.at)),
                ('nova_preempt.cmd.verify_consistency.time', mock.Mock())):
            self.useFixture(fixtures.MonkeyPatch(name, value))

    def verify(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = manage.main(['verify', '--json', '--wait', '0'])
        found = [json.loads(line) for line in out.getvalue().splitlines()]
        self.assertEqual(bool(found), bool(status))
        return {(item['kind'], item['uuid']) for item in found}

    def test_each_kind_of_problem_is_found(self):
        uuid = self.leave()
        found = self.step_until(uuid, backlog_model.ACTIVE)
        server, = found.servers
        waits = self.leave(self.big)
        self.step()
        self.assertEqual(set(), self.verify())
        self.check_trusts(waits)
        self.check_begun()
        self.check_doubled(uuid, server.uuid)
        # Its user deletes it, and no engine is there to see it.
        self.delete(server.uuid)
        wrong = {('request_of_wrong_state', uuid)}
        self.assertEqual(wrong, self.verify())
        self.check_followed_meanwhile(uuid)
        self.step_until(waits, backlog_model.ACTIVE)
        self.assertEqual(set(), self.verify())
        self.check_uncleared(waits)
        self.check_cannot_tell()

    def check_trusts(self, uuid):
        trust_id = self.get(uuid).trust_id
        made = self.trusts.made.pop(trust_id)
        self.assertEqual({('request_without_trust', uuid)}, self.verify())
        self.trusts.made[trust_id] = made
        other = self.trusts.create('', PROJECT, USER, ['member'])
        self.assertEqual({('trust_without_request', other)}, self.verify())
        self.trusts.delete(other)

    def check_begun(self):
        """Check that a submission in progress is no problem."""
        begun = backlog_submissions.PendingSubmission(
            uuidutils.generate_uuid(), PROJECT, USER, self.at(),
            trust_lifetime.expiry('any'))
        backlog_submissions.begin(self.db, begun)
        self.trusts.create('', PROJECT, USER, ['member'], begun.expires_at)
        self.assertEqual(set(), self.verify())
        self.pass_time(1201)
        self.assertEqual({('request_never_taken', begun.uuid)},
                         self.verify())
        self.step()
        self.assertEqual(set(), self.verify())

    def check_doubled(self, uuid, server):
        """Check a server that Nova created twice."""
        self.api.microversion, before = '2.90', self.api.microversion
        tag, = self.api.get_server(server)['tags']
        self.add_hosts('host2')
        other = self.boot_normal()['id']
        self.api.api_put(f'/servers/{other}/tags/{tag}', {},
                         check_response_status=[201])
        self.api.microversion = before
        # It is of another project.
        self.assertEqual(set(), self.verify())
        self.change_record(other, project_id=PROJECT)
        self.assertEqual({('server_too_many_of_request', other)},
                         self.verify())
        self.change_record(other, project_id=self.api_fixture.project_id)
        self.delete(other)

    def check_followed_meanwhile(self, uuid):
        """Check that a request that changes between two looks is no problem.
        """
        def work(_wait_s):
            self.pass_time(5)
            backlog_store.change(self.db, uuid, backlog_model.OPEN, self.at(),
                                 tries=1)

        with mock.patch('nova_preempt.cmd.verify_consistency.time') as time:
            time.sleep.side_effect = work
            self.assertEqual(set(), self.verify())

    def check_uncleared(self, uuid):
        self.assertTrue(backlog_store.change(self.db, uuid, backlog_model.OPEN,
                                             self.at(),
                                             state=backlog_model.CANCELLED))
        self.pass_time(3599)
        self.assertEqual(set(), self.verify())
        self.pass_time(1)
        self.assertEqual({('request_with_trust_after_its_end', uuid)},
                         self.verify())

    def check_cannot_tell(self):
        self.trusts.away = 'Keystone is away'
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(2, manage.main(['verify', '--wait', '0']))
        self.assertIn('the command failed: Keystone is away', err.getvalue())
