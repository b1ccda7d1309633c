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
"""Which requests have servers to be started."""

import dataclasses
import unittest

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import startable
from tests.unit.core.backlog import base
from tests.unit.core.backlog.test_lifecycle import placing
from tests.unit.core.backlog.test_lifecycle import running


class TestStartable(unittest.TestCase):

    def test_who_is(self):
        for request, expected in (
                (base.request(), True),
                (running(model.RUNNING), False),
                (base.request(state=model.CANCELLED), False),
                (placing(model.BUILDING), False),
                (dataclasses.replace(running(model.RUNNING, count=2),
                                     state=model.PARTLY_ACTIVE), True),
                (dataclasses.replace(
                    running(model.RUNNING, count=2, not_after=base.NOW),
                    state=model.PARTLY_ACTIVE), False),
                (dataclasses.replace(
                    running(model.AWAY, count=2), state=model.EVICTED),
                 False)):
            self.assertEqual(expected, bool(startable.among(
                [request], base.NOW)), request)
