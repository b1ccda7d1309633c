# SPDX-License-Identifier: Apache-2.0
"""Tests of inconsistent requests that are not repaired."""

import datetime
import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import audit_rules
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog import state_from_servers
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import boot
from tests.unit.core.backlog.base import own
from tests.unit.core.backlog.base import sight
from tests.unit.core.backlog.test_state_from_servers import OPTIONS


def disagreement(request, *sights, victims=None):
    return audit_rules.inconsistency(request, sights, victims or {}, base.NOW,
                                    OPTIONS)


class TestDisagreement(unittest.TestCase):

    def test_none(self):
        for request, sights in (
                (base.request(), ()),
                (base.request(state=backlog_model.ACTIVE, servers=(own('s1'),),
                              boots=(boot(state=backlog_model.SETTLED),)),
                 (sight('s1'),)),
                (base.request(state=backlog_model.PLACING,
                              boots=(boot(age_s=60),)),
                 ())):
            self.assertEqual('', disagreement(request, *sights))

    def test_a_placing_request_that_is_not_followed(self):
        request = base.request(state=backlog_model.PLACING, boots=(
            boot(state=backlog_model.ASKING, age_s=9999),))
        self.assertEqual("is placing, but waiting by Nova's servers",
                         disagreement(request))

    def test_active_without_servers(self):
        request = base.request(
            state=backlog_model.ACTIVE, servers=(own('s1'),),
            boots=(boot(state=backlog_model.SETTLED, age_s=9999),))
        self.assertEqual("is active, but done by Nova's servers",
                         disagreement(request))

    def test_evicted_and_its_server_is_back(self):
        request = base.request(
            state=backlog_model.EVICTED,
            servers=(own('s1', backlog_model.AWAY),),
            boots=(boot(state=backlog_model.SETTLED, age_s=9999),))
        self.assertEqual("is evicted, but active by Nova's servers",
                         disagreement(request, sight('s1')))

    def test_other_servers(self):
        request = base.request(state=backlog_model.PLACING, count=2, boots=(
            boot(count=2),))
        self.assertEqual(
            "is placing, but its servers differ from Nova's",
            disagreement(request, sight('s1', 'building')))

    def test_waits_for_too_long(self):
        self.assertIn('expired', disagreement(base.request(
            created_at=base.ago(61), longest_wait_s=60)))

    @given(st.sampled_from(backlog_model.OPEN),
           st.lists(st.sampled_from(('building', 'active', 'error',
                                     'shelved_offloaded')), max_size=3),
           st.integers(0, 9999))
    def test_a_followed_request_has_no_problem(self, state, seen, age_s):
        """No problem is found after a judgement."""
        request = base.request(state=state, count=3, boots=(
            boot(count=3, age_s=age_s),))
        sights = [sight(f's{number}', vm_state)
                  for number, vm_state in enumerate(seen)]
        for _look in range(4):
            verdict = state_from_servers.judge(request, sights, {}, base.NOW,
                                               OPTIONS)
            if not verdict.changes(request):
                break
            request = boot_outcome.with_verdict(request, verdict)
            sights = [item for item in sights
                      if item.uuid not in verdict.deletes]
        if request.state in backlog_model.OPEN:
            self.assertEqual('', disagreement(request, *sights))


class TestDoubled(unittest.TestCase):

    def doubled(self, request, **tagged):
        return audit_rules.surplus_servers(
            request, {int(name[1:]): uuids for name, uuids
                      in tagged.items()}, base.NOW)

    def test_more_than_were_asked_for(self):
        request = base.request(
            state=backlog_model.ACTIVE, servers=(own('s2'),),
            boots=(boot(state=backlog_model.SETTLED),))
        self.assertEqual([], self.doubled(request, b1=['s2']))
        self.assertEqual(['s1', 's3'],
                         self.doubled(request, b1=['s1', 's2', 's3']))

    def test_a_server_of_an_unknown_boot(self):
        self.assertEqual(['s1'], self.doubled(base.request(), b7=['s1']))

    def test_a_server_of_an_abandoned_boot(self):
        """The engine looks for them for a while."""
        for age_s, expected in ((request_servers.LATE_S - 1, []),
                                (request_servers.LATE_S, ['s1'])):
            self.assertEqual(expected, self.doubled(base.request(
                boots=(boot(state=backlog_model.LOST, age_s=age_s),)),
                b1=['s1']))


class TestUncleared(unittest.TestCase):

    def test_after_an_hour(self):
        for state, trust_id, age_s, expected in (
                (backlog_model.DONE, 't', 3600, True),
                (backlog_model.DONE, 't', 3599, False),
                (backlog_model.DONE, '', 3600, False),
                (backlog_model.ACTIVE, 't', 3600, False)):
            self.assertIs(expected, audit_rules.has_stale_trust(base.request(
                state=state, trust_id=trust_id,
                updated_at=base.NOW - datetime.timedelta(seconds=age_s)),
                base.NOW))
