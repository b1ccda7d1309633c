# SPDX-License-Identifier: Apache-2.0
"""Terms on which a victim is evicted."""

import types
import unittest

from nova_preempt.db import decisions
from nova_preempt.handover import eviction_observer
from nova_preempt.handover import eviction_policy


class TestBegin(unittest.TestCase):

    def test_servers_that_are_migrated_first(self):
        options = types.SimpleNamespace(
            actions=['migrate', 'delete'], termination_timeout_s=1,
            migrate_timeout_s=1, honored_locks='admin', minimum_runtime_s=0)
        once, other = servers = [
            types.SimpleNamespace(uuid=uuid, one_time=uuid == 'once')
            for uuid in ('once', 'other')]
        decision = types.SimpleNamespace(
            uuid='d', operation='boot', host='h',
            record={'one_time': eviction_policy.one_time(servers)})
        for server, expected in ((once, False), (other, True)):
            victim = eviction_observer.make_victim(decision, decisions.Victim(
                server.uuid, 'p', 'u', 'spot', 0, action='delete',
                last_resort='delete'), options)
            self.assertEqual(expected, victim.terms.migrate)


if __name__ == '__main__':
    unittest.main()
