# SPDX-License-Identifier: Apache-2.0
"""Every call has a timeout."""

import unittest
from unittest import mock

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

from nova_preempt import conf as nova_preempt_conf
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.conf import preemption


class TestTimeouts(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        for group in ('placement', 'cyborg'):
            # As Nova does.
            ks_loading.register_session_conf_options(self.conf, group)
        nova_preempt_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('auth_type', 'none', 'preemption')

    def test_nova(self):
        client = nova_api.NovaAPI(self.conf)._get_client()
        self.assertEqual(60, client.client.session.timeout)
        self.assertEqual(60, nova_as_user.ResourceLookup(
            self.conf)._own().session.timeout)

    def test_placement_and_cyborg(self):
        for group in ('placement', 'cyborg'):
            session = ks_loading.load_session_from_conf_options(
                self.conf, group, auth=mock.Mock())
            self.assertEqual(60, session.timeout)

    def test_an_operator_says_otherwise(self):
        for group in ('placement', 'cyborg', 'preemption'):
            self.conf.set_override('timeout', 7, group)
            self.assertEqual(7, self.conf[group].timeout)

    def test_the_sample_says_so(self):
        option, = (option for option in preemption.list_opts()
                   if option.dest == 'timeout')
        self.assertEqual(60, option.default)


if __name__ == '__main__':
    unittest.main()
