# SPDX-License-Identifier: Apache-2.0

import datetime
import types
import unittest

from nova_preempt_dashboard import host_kinds

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)


def host(**values):
    return types.SimpleNamespace(**{
        'state': 'up', 'status': 'enabled', 'vacant': True,
        'running_servers': 0, 'reservations': [], **values})


def booking(start_h, end_h):
    return {'id': 'a', 'start_at': f'2026-01-01T{start_h:02}:00:00Z',
            'end_at': f'2026-01-01T{end_h:02}:00:00Z'}


class TestKinds(unittest.TestCase):

    def check(self, kind, power_state=None, **values):
        self.assertEqual(kind, host_kinds.kind(
            host(**values), power_state, NOW))

    def test_servers(self):
        self.check('free')
        self.check('preemptible', running_servers=2)
        self.check('normal', running_servers=2, vacant=False)

    def test_service(self):
        self.check('down', state='down')
        self.check('down', status='disabled')

    def test_power(self):
        # Its service does not run then.
        self.check('asleep', 'asleep', state='down')
        self.check('asleep', 'waking', status='disabled')
        self.check('free', 'on')
        self.check('down', 'failed', state='down')

    def test_reservations(self):
        self.check('reserved', reservations=[booking(11, 13)],
                   running_servers=1)
        self.check('reserved', reservations=[booking(12, 13)])
        self.check('free', reservations=[booking(10, 12), booking(13, 14)])

    def test_count(self):
        counts = host_kinds.count(['free', 'down', 'free'])
        self.assertEqual(list(host_kinds.KINDS), [kind for kind, _n in counts])
        self.assertEqual({'free': 2, 'down': 1},
                         {kind: n for kind, n in counts if n})
