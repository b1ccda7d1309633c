# SPDX-License-Identifier: Apache-2.0
"""Keystone that does not answer; with a real one see tests/cloud."""

import unittest
from unittest import mock

from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg

from nova_preempt import conf as nova_preempt_conf
from nova_preempt.cloud import keystone_trusts


class TestTimeout(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        nova_preempt_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('auth_type', 'none', 'preemption')

    def test_the_default_timeout_is_a_minute(self):
        made = keystone_trusts.Trusts(self.conf)._own()
        self.assertEqual(60, made.timeout)
        self.conf.set_override('timeout', 3, 'preemption')
        made = keystone_trusts.Trusts(self.conf)._own()
        self.assertEqual(3, made.timeout)


class TestDelete(unittest.TestCase):

    def delete(self, answer, gone=True):
        made = keystone_trusts.Trusts(None)
        session = mock.Mock(**{'delete.side_effect': answer})
        with mock.patch.object(made, 'session', side_effect=(
                keystone_trusts.TrustGone('no role') if gone else [session])):
            made._service = session
            made.delete('t1')

    def test_a_deleted_trust_is_gone(self):
        self.delete([None])
        self.delete(ks_exc.NotFound('which?'))

    def test_a_trust_that_may_not_be_deleted_is_not_gone(self):
        """It is valid again as soon as its user has the role again."""
        for gone in (True, False):
            self.assertRaisesRegex(
                keystone_trusts.KeystoneUnavailable,
                'Trust t1 cannot be deleted: not you',
                self.delete, ks_exc.Forbidden('not you'), gone)


if __name__ == '__main__':
    unittest.main()
