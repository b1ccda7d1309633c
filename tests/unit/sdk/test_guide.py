# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide, one after the other."""

import json
from unittest import mock

from nova_preempt.db import backlog_store
from nova_preempt.db import pauses
from nova_preempt.db import reservable_hosts
from tests.unit import test_guide
from tests.unit.api.base import make_uuid
from tests.unit.sdk import base


class TestGuide(base.SdkTestCase):

    def setUp(self):
        super().setUp()
        for name in ('node-3', 'node-7'):
            self.inventory.add(name, vcpus=8)
        # What the engine does when a server is to end.
        ended = self.add('d', 'p', [('p-spot', 'p', 'spot')])
        self.enterContext(mock.patch.object(
            self.engine, 'simulate', lambda *arguments, **values: ended))
        # Not in "auth", where openstacksdk 4.4.0 overlooks the token.
        (self.directory / 'clouds.yaml').write_text(json.dumps({'clouds': {
            name: {'auth_type': 'admin_token', 'token': token,
                   'auth': {'endpoint': f'{self.url}/v1'}}
            for name, token in (('mycloud', 'u:p'),
                                ('mycloud-admin', 'admin:z'))}}))

    def test_examples_of_the_guide(self):
        printed = []
        names = {'server_id': make_uuid('p-spot'), 'project_id': 'p',
                 'image_id': self.reading.image_id,
                 'print': lambda *values: printed.append(values)}
        # Days that are far off, whenever this is run.
        self.conf.set_override('max_advance_s', -1, 'reservation')
        for block in test_guide.blocks('sdk.rst', 'python'):
            exec(compile(block, 'sdk.rst', 'exec'), names)
        for name in ('conn', 'admin'):
            opened = names[name]
            self.opened(getattr(opened, '_connection', opened))
        self.check(names, printed)

    def check(self, names, printed):
        self.assertIn(('preempts', 3), printed)
        self.assertIn((['power'],), printed)
        self.assertIn(('m1.large', 'az1', 3), printed)
        self.assertTrue(any('hosts' in str(values[0]) for values in printed))
        self.assertEqual('done', names['preemption'].status)
        self.assertEqual({}, pauses.get(self.db))
        made, = backlog_store.find(self.db)
        self.assertEqual((8, 'cancelled'), (made.count, made.state))
        self.assertEqual({'rack': 'r1'},
                         reservable_hosts.get_hosts(self.db)['node-3'].extra)
        self.assertEqual(600, names['conn'].preemption.get_reservation(
            names['reservation']).before_end_s)
