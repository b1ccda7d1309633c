# SPDX-License-Identifier: Apache-2.0
"""Tests of the hosts for preemptible servers and for preemption."""

import types
import unittest

import hypothesis
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import filters

from nova_preempt.scheduler import host_states
from nova_preempt.scheduler.filters import preemptible_filter

ALLOWED = st.sampled_from((None, 'true', 'false', 'no'))
HOSTS = st.lists(st.tuples(ALLOWED, ALLOWED, st.booleans()), max_size=5)


def make_spec(*, preemptible, rebuild=False):
    extra_specs = {'preemptible:enabled': 'true'} if preemptible else {}
    hints = {'_nova_check_type': ['rebuild']} if rebuild else {}
    return objects.RequestSpec(
        flavor=objects.Flavor(extra_specs=extra_specs),
        scheduler_hints=hints)


def make_host(servers, preemption, victims):
    metadata = {key: value for key, value in (
        ('preemptible:allow_servers', servers),
        ('preemptible:allow_preemption', preemption)) if value is not None}
    return types.SimpleNamespace(
        preemption=host_states.PreemptionMark(('v',) * victims), host='h',
        nodename='h',
        aggregates=[types.SimpleNamespace(metadata=metadata)])


class TestPreemptibleFilter(unittest.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.filter = preemptible_filter.PreemptibleFilter()

    def passes(self, spec_obj, *values):
        return bool(list(self.filter.filter_all([make_host(*values)],
                                                spec_obj)))

    def test_hosts_for_preemptible_servers(self):
        spec_obj = make_spec(preemptible=True)
        self.assertEqual([True, True, False, True], [
            self.passes(spec_obj, None, None, False),
            self.passes(spec_obj, 'true', 'false', True),
            self.passes(spec_obj, 'false', None, False),
            self.passes(spec_obj, None, 'false', False)])

    def test_hosts_that_preempt(self):
        spec_obj = make_spec(preemptible=False)
        self.assertEqual([True, True, False, True], [
            self.passes(spec_obj, 'false', None, True),
            self.passes(spec_obj, None, 'true', True),
            self.passes(spec_obj, None, 'false', True),
            # With room for it nobody has to be preempted.
            self.passes(spec_obj, None, 'false', False)])

    @hypothesis.given(HOSTS, st.booleans(), st.booleans())
    def test_all_at_once_is_each_by_itself(self, values, preemptible, rebuild):
        hosts = [make_host(*value) for value in values]
        spec_obj = make_spec(preemptible=preemptible, rebuild=rebuild)
        expected = list(filters.BaseHostFilter.filter_all(
            self.filter, hosts, spec_obj))
        self.assertEqual(expected, list(self.filter.filter_all(
            hosts, spec_obj)))
        if rebuild:
            self.assertEqual(hosts, expected)


if __name__ == '__main__':
    unittest.main()
