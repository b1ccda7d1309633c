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
"""Budgets, with more requests at once."""

from tests.functional import test_budgets


class TestConcurrency(test_budgets.TestConcurrency):

    hosts = 4
    requests = 8
    budget = 3

    def test_headroom(self):
        """Of three hosts, whatever there is to fill."""
        self.requests = 12
        super().test_headroom()
