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

import unittest

import requests

from nova_preempt import segments

FLAVORS = 'http://nova.example.org/v2.1/flavors/'


class TestSegment(unittest.TestCase):

    def test_stays_one_segment_whatever_requests_makes_of_it(self):
        for name in ('a', '1', 'a b', 'a/b', '../..', './a', 'a?b=c', 'a#b',
                     '%2e%2e', '%2F', 'ä', 'a;b', 'detail/', '...', 'a\n',
                     '..%2f..', '//', '\\..\\'):
            prepared = requests.Request(
                'GET', FLAVORS + segments.segment(name)).prepare()
            self.assertTrue(prepared.url.startswith(FLAVORS), prepared.url)
            rest = prepared.url.removeprefix(FLAVORS)
            self.assertNotIn('/', rest)
            self.assertNotIn('?', rest)
            self.assertEqual(name, requests.utils.unquote(rest))

    def test_other_resources(self):
        for name in ('', '.', '..', 'detail'):
            with self.assertRaises(segments.NotASegment):
                segments.segment(name, segments.DETAIL)
        self.assertEqual('detail', segments.segment('detail'))

    def test_no_text(self):
        with self.assertRaisesRegex(segments.NotASegment, 'is no text'):
            segments.segment('\ud800')


if __name__ == '__main__':
    unittest.main()
