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

"""On which terms a server ends."""

import types
import unittest

from nova_preempt.core import notice
from nova_preempt.core import terms

NOTICE = notice.NoticeRule(30, 10, 60)


def of(*actions, action='', notice_s=None, restore=False, pinned=False,
       one_time=False):
    return terms.of(types.SimpleNamespace(
        action=action, notice_s=notice_s, restore=restore, pinned=pinned,
        one_time=one_time), actions, NOTICE)


class TestTerms(unittest.TestCase):

    def test_what_the_flavor_asks_for(self):
        self.assertEqual(
            terms.Terms('stop', 45, restore=False),
            of('shelve', 'stop', action='stop', notice_s=45))

    def test_within_what_the_operator_allows(self):
        self.assertEqual(
            terms.Terms('shelve', 60, restore=False),
            of('shelve', 'stop', action='delete', notice_s=9999))
        self.assertEqual(terms.Terms('delete', 30, restore=False),
                         of('migrate', action='stop'))

    def test_only_what_was_shelved_comes_back(self):
        self.assertTrue(of('shelve', restore=True).restore)
        self.assertFalse(of('stop', restore=True).restore)

    def test_what_asks_to_be_moved(self):
        self.assertEqual(
            terms.Terms('shelve', 30, restore=True, migrate=True),
            of('shelve', 'migrate', action='migrate', restore=True))
        # Where nobody may be moved it is no more than another name.
        self.assertFalse(of('shelve', action='migrate').migrate)

    def test_a_device_that_can_be_used_once_is_not_migrated(self):
        """Its server would take another one where it is migrated to."""
        self.assertEqual(
            terms.Terms('delete', 30, restore=False),
            of('delete', 'migrate', action='migrate', one_time=True))
        for actions in (['migrate', 'delete'], ['delete', 'migrate']):
            self.assertFalse(
                terms.is_migrated_first('migrate', actions, one_time=True))
        self.assertFalse(
            terms.is_migrated_first('delete', ['migrate'], one_time=True))

    def test_who_is_migrated_first(self):
        for actions, asking, others in (
                (['migrate', 'stop'], True, True),
                (['stop', 'migrate'], True, False), ([], True, False)):
            for action, expected in (('migrate', asking), ('stop', others)):
                self.assertEqual(
                    expected, terms.is_migrated_first(action, actions),
                    (actions, action))
