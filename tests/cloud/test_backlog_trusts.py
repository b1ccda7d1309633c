# SPDX-License-Identifier: Apache-2.0

"""Tests of trusts with a real Keystone."""

import pathlib
import sys
import tempfile
import time
import unittest
import uuid

from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg

from nova_preempt.cloud import keystone_trusts
import nova_preempt.conf
from nova_preempt.core.backlog import trust_lifetime
from tests.cloud import lone_keystone

ROLES = ('member', 'reader')


class TestTrusts(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.keystone = lone_keystone.Keystone(
            pathlib.Path(sys.executable).parent)
        cls.addClassCleanup(cls.keystone.stop)
        cls.keystone.start()
        cls.member = cls.keystone.find('role', 'member')
        # Nothing but a trustee.
        cls.service = cls.keystone.make_user('service')
        cls.services = cls.keystone.make(
            'project', name='services', domain_id='default')
        cls.keystone.grant(cls.service, cls.services, cls.member)

    def setUp(self):
        name = f'user-{uuid.uuid4().hex[:8]}'
        self.name = self.project_name = name
        self.user = self.keystone.make_user(name)
        self.project = self.keystone.make('project', name=name,
                                          domain_id='default')
        self.keystone.grant(self.user, self.project, self.member)
        self.trusts = keystone_trusts.Trusts(self.conf())

    def conf(self, **changes):
        values = {'auth_type': 'password', 'auth_url': self.keystone.url,
                  'username': 'service', 'password': lone_keystone.PASSWORD,
                  'user_domain_name': 'Default', 'project_name': 'services',
                  'project_domain_name': 'Default', **changes}
        conf = cfg.ConfigOpts()
        self.addCleanup(conf.reset)
        nova_preempt.conf.register_opts(conf)
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            file.write('[preemption]\n' + ''.join(
                f'{name} = {value}\n' for name, value in values.items()))
            file.flush()
            conf([], default_config_files=[file.name], default_config_dirs=[])
            return conf

    def token(self):
        return self.keystone.token(self.name, self.project_name)

    def create(self, token=None, roles=ROLES):
        return self.trusts.create(token or self.token(), self.project,
                                  self.user, roles)

    def left(self):
        """The ids of all trusts of the user."""
        return [trust['id'] for trust in self.keystone.admin.get(
            f'/OS-TRUST/trusts?trustor_user_id={self.user}'
        ).json()['trusts']]

    def assert_gone(self, trust_id):
        with self.assertRaises(keystone_trusts.TrustGone) as caught:
            self.trusts.session(trust_id)
        self.assertIn('a role of the user in the project was revoked',
                      str(caught.exception))

    def test_acting_as_the_user(self):
        trust_id = self.create()
        found = self.keystone.admin.get(
            f'/OS-TRUST/trusts/{trust_id}').json()['trust']
        self.assertEqual(
            (self.user, self.service, self.project, True, None, 0),
            (found['trustor_user_id'], found['trustee_user_id'],
             found['project_id'], found['impersonation'],
             found['expires_at'], found['redelegation_count']))
        access = self.trusts.session(trust_id)
        access = access.auth.get_access(access)
        self.assertEqual(
            (self.user, self.project, set(ROLES)),
            (access.user_id, access.project_id, set(access.role_names)))
        self.trusts.delete(trust_id)
        self.assertEqual([], self.left())
        self.assert_gone(trust_id)
        self.trusts.delete(trust_id)

    def test_only_the_user_may_delete_the_trust(self):
        """The service user is no administrator here."""
        trust_id = self.create()
        with self.assertRaises(ks_exc.Forbidden):
            self.keystone.session('service', 'services').delete(
                f'{self.keystone.url}/OS-TRUST/trusts/{trust_id}')
        self.trusts.delete(trust_id)
        self.assertEqual([], self.left())

    def marked(self, user_id, mark):
        return keystone_trusts.marked(self.trusts.list(), user_id, mark)

    def test_an_orphaned_trust_is_found(self):
        """The expiry identifies it among other trusts of all users."""
        others = [self.create()]
        found = {}
        for _number in range(2):
            mark = trust_lifetime.expiry(str(uuid.uuid4()))
            found[mark] = self.trusts.create(
                self.token(), self.project, self.user, ROLES, mark)
        for mark, trust_id in found.items():
            self.assertEqual([trust_id], self.marked(self.user, mark))
            self.assertEqual([], self.marked('somebody', mark))
            # It is as good as one that never expires.
            self.assertTrue(self.trusts.session(trust_id).get_token())
            self.trusts.delete(trust_id)
            self.assertEqual([], self.marked(self.user, mark))
        self.assertEqual(others, self.left())

    def refused(self, *args, **kwargs):
        with self.assertRaises(keystone_trusts.TrustRefused) as caught:
            self.create(*args, **kwargs)
        self.assertEqual([], self.left())
        return str(caught.exception)

    def test_an_application_credential(self):
        made = self.keystone.session(self.name, self.project_name).post(
            f'{self.keystone.url}/users/{self.user}/application_credentials',
            json={'application_credential': {'name': 'robot'}}
        ).json()['application_credential']
        token = self.keystone.admin.session.post(
            f'{self.keystone.url}/auth/tokens', authenticated=False,
            json={'auth': {'identity': {
                'methods': ['application_credential'],
                'application_credential': {
                    'id': made['id'], 'secret': made['secret']}}}},
        ).headers['X-Subject-Token']
        self.assertIn('password', self.refused(token))

    def test_a_token_of_a_trust(self):
        trust_id = self.create()
        token = self.trusts.session(trust_id).get_token()
        with self.assertRaises(keystone_trusts.TrustRefused):
            self.create(token)
        self.assertEqual([trust_id], self.left())

    def test_a_role_that_the_user_has_not(self):
        self.assertIn('role', self.refused(roles=['admin']))
        self.refused(roles=[])
        self.refused('nonsense')

    def test_the_role_is_revoked(self):
        trust_id = self.create()
        self.keystone.grant(self.user, self.project, self.member, 'DELETE')
        self.assert_gone(trust_id)
        # Here it stays: the service user is no administrator.
        with self.assertRaisesRegex(
            keystone_trusts.KeystoneUnavailable, 'stays'):
            self.trusts.delete(trust_id)
        self.assertEqual([trust_id], self.left())
        self.keystone.grant(self.user, self.project, self.member)
        self.trusts.delete(trust_id)
        self.assertEqual([], self.left())

    def test_an_administrator_deletes_the_trust(self):
        trust_id = self.create()
        admin = self.keystone.find('role', 'admin')
        self.keystone.grant(self.user, self.project, self.member, 'DELETE')
        self.keystone.grant(self.service, self.services, admin)
        self.addCleanup(self.keystone.grant, self.service, self.services,
                        admin, 'DELETE')
        self.trusts.delete(trust_id)
        self.assertEqual([], self.left())

    def enable(self, kind, which, enabled):
        self.keystone.admin.patch(f'/{kind}s/{which}',
                                  json={kind: {'enabled': enabled}})

    def test_user_or_project_are_deleted(self):
        for kind, which in (('user', self.user), ('project', self.project)):
            trust_id = self.create()
            self.enable(kind, which, False)
            self.assert_gone(trust_id)
            with self.assertRaisesRegex(keystone_trusts.KeystoneUnavailable,
                                        'stays'):
                self.trusts.delete(trust_id)
            self.enable(kind, which, True)
            # To Keystone tokens of the second in which somebody was disabled
            # are from before that; we try again later.
            time.sleep(1)
            self.trusts.delete(trust_id)
        trust_id = self.create()
        self.keystone.admin.delete(f'/users/{self.user}')
        self.assert_gone(trust_id)
        self.trusts.delete(trust_id)

    def test_a_wrong_password_of_ours_is_no_fault_of_users(self):
        trust_id = self.create()
        wrong = keystone_trusts.Trusts(self.conf(password='wrong'))
        for call in (lambda: wrong.session(trust_id),
                     lambda: wrong.delete(trust_id),
                     lambda: wrong.create(self.token(), self.project,
                                          self.user, ROLES)):
            with self.assertRaises(
                keystone_trusts.KeystoneUnavailable) as caught:
                call()
            self.assertIn('service user', str(caught.exception))
        self.assertEqual([trust_id], self.left())

    def test_credentials_that_know_nothing_of_trusts(self):
        wrong = keystone_trusts.Trusts(self.conf(auth_type='none'))
        with self.assertRaises(keystone_trusts.KeystoneUnavailable):
            wrong.session('any')

    def test_keystone_is_away(self):
        trust_id = self.create()
        token = self.token()
        self.keystone.pause()
        try:
            for call in (lambda: self.trusts.session(trust_id),
                         lambda: self.trusts.delete(trust_id),
                         lambda: self.create(token)):
                with self.assertRaises(keystone_trusts.KeystoneUnavailable):
                    call()
        finally:
            self.keystone.resume()
        self.assertEqual([trust_id], self.left())
