# SPDX-License-Identifier: Apache-2.0
import types
import unittest

from nova import exception

from nova_preempt.cloud import placement_api
from nova_preempt.scheduler import multi_create_claim


class Placement:
    """Placement that stores allocations, or fails as told."""

    def __init__(self):
        self.held = {}
        self.posts = 0
        self.answer = None
        # Whether it arrives though nobody gets to know.
        self.arrives = False
        self.is_away = False

    def post_allocations(self, consumers):
        self.posts += 1
        if self.answer is None or self.arrives:
            for consumer in consumers:
                assert consumer.generation is None
                assert (consumer.project_id, consumer.user_id) == ('p', 'u')
                self.held[consumer.uuid] = consumer.allocations
        if self.answer is not None:
            raise self.answer

    def delete_allocations(self, uuid):
        if self.is_away:
            raise placement_api.PlacementError('away')
        self.held.pop(uuid, None)


def state(name, victims=()):
    return types.SimpleNamespace(
        uuid=name, nodename=name, allocation_candidates=[{'allocations': {
            name: {'resources': {'VCPU': 1}}}}],
        preemption=types.SimpleNamespace(victims=victims))


class TestBatchClaim(unittest.TestCase):
    """Three servers: two are to be on host a, and one on b."""

    uuids = ('1', '2', '3')

    def setUp(self):
        self.placement = Placement()
        self.chosen = {'a': 2, 'b': 1}
        self.every = [state(name) for name in 'cba']
        # Hosts that are full by now.
        self.full = set()
        # What Nova has claimed by itself.
        self.claims = []

    def schedule(self, error=None, changed=lambda number, states: states):
        """Schedule as Nova does; return the hosts of the servers.

        :param error: what happens before the last server is claimed
        :param changed: what its filters leave for a server
        """
        carried = multi_create_claim.MultiCreateClaim(
            self.placement, self.uuids, lambda *_: self.chosen)
        found = {}
        with carried:
            for number, uuid in enumerate(self.uuids):
                if error is not None and number == len(self.uuids) - 1:
                    raise error
                spec = types.SimpleNamespace(instance_uuid=uuid)
                for one in carried.first(changed(number, self.every), spec):
                    if carried.claim(lambda uuid=uuid, one=one: self.claim(
                            uuid, one), uuid, one.allocation_candidates[0],
                            'p', 'u'):
                        found[uuid] = one.nodename
                        carried.consumed(one)
                        break
                else:
                    # Nova's _ensure_sufficient_hosts.
                    for name in found:
                        self.placement.held.pop(name)
                    raise exception.NoValidHost(reason='')
        return found

    def claim(self, uuid, one):
        assert uuid not in self.placement.held
        if one.nodename in self.full:
            return False
        self.claims.append(uuid)
        self.placement.held[uuid] = one.allocation_candidates[0][
            'allocations']
        return True

    def check_held(self, found):
        self.assertEqual(
            {uuid: {name: {'resources': {'VCPU': 1}}}
             for uuid, name in found.items()}, self.placement.held)

    def test_all_at_once(self):
        found = self.schedule()
        self.assertEqual({'1': 'b', '2': 'a', '3': 'a'}, found)
        self.assertEqual((1, []), (self.placement.posts, self.claims))
        self.check_held(found)

    def test_nothing_chosen(self):
        for chosen in ({}, {'gone': 3}, {'b': 1}):
            self.chosen = chosen
            self.placement.held.clear()
            self.check_held(self.schedule())
        self.assertEqual(0, self.placement.posts)

    def test_some_chosen(self):
        """Nova finds the others a place."""
        self.chosen = {'b': 2}
        found = self.schedule()
        self.assertEqual({'1': 'b', '2': 'b', '3': 'c'}, found)
        self.assertEqual((1, ['3']), (self.placement.posts, self.claims))
        self.check_held(found)

    def test_refused(self):
        """Another request has used the last space on a host."""
        self.placement.answer = placement_api.Conflict('full')
        self.full = {'b'}
        found = self.schedule()
        self.assertEqual({'1': 'a', '2': 'a', '3': 'c'}, found)
        self.assertEqual((1, list(self.uuids)),
                         (self.placement.posts, self.claims))
        self.check_held(found)

    def test_an_unknown_result_is_rolled_back(self):
        self.placement.answer = placement_api.PlacementError('timeout')
        for self.placement.arrives in (False, True):
            self.placement.held.clear()
            with self.assertLogs(level='WARNING') as logs:
                found = self.schedule()
            self.assertIn('1, 2, 3', ''.join(logs.output))
            self.assertEqual({'1': 'b', '2': 'a', '3': 'a'}, found)
            self.check_held(found)

    def test_an_unknown_result_without_a_roll_back(self):
        """No capacity is claimed twice."""
        self.placement.answer = placement_api.PlacementError('timeout')
        self.placement.arrives = self.placement.is_away = True
        with self.assertLogs(level='ERROR') as logs:
            self.assertRaises(exception.NoValidHost, self.schedule)
        self.assertEqual([], self.claims)
        for uuid in self.uuids:
            self.assertIn(f'Server {uuid} may have', ''.join(logs.output))

    def test_the_filters_change_their_mind(self):
        """Once the first server is on a host, the others use other hosts."""
        found = self.schedule(
            changed=lambda number, states: states[:1] if number else states)
        self.assertEqual({'1': 'b', '2': 'c', '3': 'c'}, found)
        self.check_held(found)

    def test_no_host_for_the_last(self):
        self.assertRaises(
            exception.NoValidHost, self.schedule,
            changed=lambda number, states: () if number == 1 else states)
        self.assertEqual({}, self.placement.held)

    def test_an_error(self):
        self.assertRaises(RuntimeError, self.schedule, RuntimeError())
        self.assertEqual({}, self.placement.held)
        self.placement.answer = placement_api.Conflict('full')
        self.assertRaises(RuntimeError, self.schedule, RuntimeError())
        self.assertEqual({}, self.placement.held)

    def test_no_server_is_evicted(self):
        self.every = [state('c'), state('b', victims=['v']), state('a')]
        found = self.schedule()
        self.assertEqual({'1': 'a', '2': 'a', '3': 'c'}, found)
        self.check_held(found)


if __name__ == '__main__':
    unittest.main()
