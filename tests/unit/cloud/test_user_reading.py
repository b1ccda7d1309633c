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
"""What is looked up as a user."""

import unittest
from unittest import mock

from keystoneauth1 import exceptions as ks_exc

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import user_reading

NOT_ASKED = AssertionError('Nova was asked')


class TestNames(unittest.TestCase):

    def test_a_key_pair_may_be_called_detail(self):
        reading = user_reading.UserReading(None)
        with mock.patch.object(reading, '_ask') as ask:
            reading.key_pair('token', 'detail')
        self.assertEqual('detail', ask.call_args.args[-1])

    def test_no_error_has_them(self):
        reading = user_reading.UserReading(None)
        with (mock.patch.object(reading, '_endpoint', return_value='http://n'),
              mock.patch.object(reading, '_own') as own,
              self.assertRaises(nova_api.NovaError) as caught):
            own.return_value.get.side_effect = ks_exc.HttpError('too long')
            reading.key_pair('token', 'mine')
        self.assertEqual('GET /os-keypairs: too long (HTTP 0)',
                         str(caught.exception))

    def test_that_nothing_can_have(self):
        reading = user_reading.UserReading(None)
        with mock.patch.object(reading, '_ask', side_effect=NOT_ASKED):
            for read in (reading.flavor, reading.image):
                for name in ('detail', '..', '\ud800'):
                    with self.assertRaises(user_reading.NotFound):
                        read('token', name)
