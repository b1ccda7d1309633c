# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.cloud import placement_api
from nova_preempt.core import eligibility
from nova_preempt.core import headroom_account
from nova_preempt.core import model
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.engine import headroom_task
from nova_preempt.engine import standalone_evictions
from tests.unit.engine import test_server_expiry


class TestWhoEndsAlready(unittest.TestCase):
    """Two servers fill a host, half of which must be free."""

    def ended(self, *, there='ab', open_when_read=(True,), failure=None,
              groups=1, leaving='', **decision):
        """Return the victims beside one that ends already.

        :param open_when_read: whether it does, each time that is looked at;
            the last one holds from then on
        :param leaving: those that end after their decision was closed
        """
        held = {uuid: {'VCPU': 1} for uuid in there}
        process = mock.Mock(clock=lambda: test_server_expiry.NOW)
        process.pauses.why.return_value = ''
        is_open = list(open_when_read)

        def get_decisions(statuses):
            found = is_open.pop(0) if len(is_open) > 1 else is_open[0]
            return [db.Decision('d', victims=(db.Victim('a', allocations={
                'uuid': {'resources': {'VCPU': 1}}}),), **decision)
                ] if found else []

        process.decisions.get_leaving.return_value = [db.Victim(
            uuid, allocations={'uuid': {'resources': {'VCPU': 1}}})
            for uuid in leaving]
        process.decisions.get_decisions.side_effect = get_decisions
        process.decisions.get_ending.side_effect = lambda: dict.fromkeys(
            'a' if is_open[0] else '', 'p')
        known = mock.Mock()
        known.headroom.look.return_value = groups * [
            headroom_account.HostGroup('all', headroom_account.parse('VCPU:1'),
            {'h': model.Provider('uuid', 1, {'VCPU': model.Inventory(2)},
            held)})]
        known.servers.servers.return_value = [
            test_server_expiry.server(uuid) for uuid in 'ab']
        known.policy.return_value = preemption_policy.Policy(
            eligibility.Rules(), ('delete',), lambda server, options: 0)
        known.budgets.read.return_value = None
        ends = standalone_evictions.Evictions(process, mock.Mock(), None, None,
                                              1)
        self.addCleanup(ends.close)
        with mock.patch.object(ends, 'begin') as begin:
            keeper = headroom_task.HeadroomKeeper(process, known, set, ends)
            if failure:
                begin.side_effect = failure
                self.assertRaises(type(failure), keeper.keep)
            else:
                keeper.keep()
        return [call.args[0].uuid for call in begin.mock_calls]

    def test_space_of_evictions_for_no_server_counts_as_free(self):
        """Its capacity will be free, whatever the reason."""
        for operation in 'headroom', 'maximum_runtime', 'simulation':
            self.assertEqual([], self.ended(
                server_uuid='', operation=operation))

    def test_space_of_victims_that_outlive_their_decision_counts(self):
        """Nova still shelves one that did not end in time."""
        self.assertEqual([], self.ended(open_when_read=[False], leaving='a'))

    def test_a_victim_that_is_gone_before_others_of_its_decision(self):
        self.assertEqual(['b'], self.ended(
            there='nb', server_uuid='', operation='reservation'))

    def test_an_eviction_that_ended_while_hosts_were_read(self):
        """The read hosts still include the victim."""
        self.assertEqual([], self.ended(
            open_when_read=(True, False), server_uuid='',
            operation='headroom'))

    def test_an_eviction_that_began_while_hosts_were_read(self):
        self.assertEqual([], self.ended(
            open_when_read=(False, True), server_uuid='',
            operation='headroom'))

    def test_space_of_evictions_for_a_server_does_not_count_as_free(self):
        self.assertEqual(['b'], self.ended(server_uuid='n',
                                           operation='create'))

    def test_a_failed_eviction_does_not_stop_other_groups(self):
        for failure, asked in ((placement_api.PlacementError('500'),
                                ['b', 'b']),
                               (placement_api.NoAnswer('refused'), ['b'])):
            self.assertEqual(asked, self.ended(
                server_uuid='n', operation='create', groups=2,
                failure=failure))


if __name__ == '__main__':
    unittest.main()
