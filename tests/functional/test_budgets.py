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
"""What is spared: servers whose turn it was, projects, groups, headroom."""

from tests.functional import base


class TestRepeats(base.PreemptionTestCase):

    def test_not_always_the_same(self):
        self.add_hosts('host1')
        flavor = self.create_flavor('shelvable', 1, 1024, 10,
                                    preemptible=True,
                                    **{'preemptible:action': 'shelve'})
        cheap = self.boot_spot('a', 'host1', 100, flavor)
        dear = self.boot_spot('b', 'host1', 1000, flavor)
        normal = self.boot_normal('n1')['id']
        self.assertEqual({cheap}, self.last_victims())
        self.delete(normal)
        self.api.post_server_action(cheap, {'unshelve': None})
        self.wait(cheap)
        self.set_uptime(cheap, 100, self.now)
        self.scheduler.preemption.refresh()
        self.boot_normal('n2')
        self.assertEqual({dear}, self.last_victims())
        self.assertEqual(1000 * 10**6, self.last_decision().cost_us)
