# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Terms on which a victim is evicted."""

import types
import unittest

from nova_preempt.db import decisions
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import eviction_view


class TestBegin(unittest.TestCase):

    def test_who_is_migrated_first(self):
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
            victim = eviction_view.make_victim(decision, decisions.Victim(
                server.uuid, 'p', 'u', 'spot', 0, action='delete',
                last_resort='delete'), options)
            self.assertEqual(expected, victim.terms.migrate)


if __name__ == '__main__':
    unittest.main()
