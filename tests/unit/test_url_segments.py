# SPDX-License-Identifier: Apache-2.0

import unittest

import requests

from nova_preempt import url_segments

FLAVORS = 'http://nova.example.org/v2.1/flavors/'


class TestSegment(unittest.TestCase):

    def test_stays_one_segment_whatever_requests_makes_of_it(self):
        for name in ('a', '1', 'a b', 'a/b', '../..', './a', 'a?b=c', 'a#b',
                     '%2e%2e', '%2F', 'ä', 'a;b', 'detail/', '...', 'a\n',
                     '..%2f..', '//', '\\..\\'):
            prepared = requests.Request(
                'GET', FLAVORS + url_segments.segment(name)).prepare()
            self.assertTrue(prepared.url.startswith(FLAVORS), prepared.url)
            rest = prepared.url.removeprefix(FLAVORS)
            self.assertNotIn('/', rest)
            self.assertNotIn('?', rest)
            self.assertEqual(name, requests.utils.unquote(rest))

    def test_other_resources(self):
        for name in ('', '.', '..', 'detail'):
            with self.assertRaises(url_segments.NotASegment):
                url_segments.segment(name, url_segments.DETAIL)
        self.assertEqual('detail', url_segments.segment('detail'))

    def test_no_text(self):
        with self.assertRaisesRegex(url_segments.NotASegment, 'valid Unicode'):
            url_segments.segment('\ud800')


if __name__ == '__main__':
    unittest.main()
