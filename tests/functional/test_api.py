# SPDX-License-Identifier: Apache-2.0
"""The API with the scheduler and the engine that it asks."""

import webob

from nova_preempt.api import middleware_pipeline
from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.db import decisions
from tests.functional import base


class ApiTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.flags(auth_strategy='noauth', group='preemption_api')
        self.app = middleware_pipeline.make_app(cmd_engine.CONF)
        self.project = self.api_fixture.project_id
        self.add_hosts('host1')
        self.engine = self.start_engine()
        server = cmd_engine.make_server(cmd_engine.CONF, self.engine)
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)

    def ask(self, path, body=None, admin=True, code=200, project=None,
            method='POST'):
        request = webob.Request.blank(f'/v1/{path}')
        request.headers['OpenStack-API-Version'] = 'preemption latest'
        request.headers['X-Auth-Token'] = (
            f'{"admin" if admin else "user"}:{project or self.project}')
        if body is not None:
            request.method = method
            request.content_type = 'application/json'
            request.json = body
        response = request.get_response(self.app)
        self.assertEqual(code, response.status_int, response.text)
        return response.json

    def explain(self, flavor, admin=True, **wanted):
        return self.ask('explain', {'explain': {'flavor': flavor, **wanted}},
                        admin)['explain']


class TestExplain(ApiTestCase):

    def test_before_and_after_a_preemption(self):
        self.ask('explain', {'explain': {'flavor': 'unknown'}}, code=400)
        pinned = self.create_flavor('pinned', 2, 1024, 10,
                                    **{'hw:cpu_policy': 'dedicated'})
        # Also where hosts have no PCPU.
        for flavor in (self.small, self.spot, pinned):
            answer = self.explain(flavor)
            self.assertEqual(('free', 'host1', []), (
                answer['outcome'], answer['host'], answer['victims']))
        cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        before = self.allocations()
        self.assert_no_valid_host(self.create_flavor('huge', 64, 1024, 10))
        self.assert_no_valid_host(self.spot)
        self.assert_no_valid_host(self.small, host='elsewhere')
        self.assert_preempts(cheap)
        self.assert_a_member_sees_their_own(cheap)
        self.assertEqual(before, self.allocations())
        self.assertEqual([], self.decisions.get_decisions())
        self.boot_normal()
        self.assertEqual({cheap}, self.last_victims())
        self.assert_consistent()
        self.assert_no_valid_host(pinned)
        self.assert_counted()

    def assert_no_valid_host(self, flavor, **wanted):
        self.assertEqual('no_valid_host',
                         self.explain(flavor, **wanted)['outcome'])

    def assert_preempts(self, cheap):
        answer = self.explain('small')
        self.assertEqual(('preempts', 'host1', 1, 100_000_000), (
            answer['outcome'], answer['host'], answer['victim_count'],
            answer['cost_us']))
        self.assertEqual(cheap, answer['victims'][0]['server_id'])
        self.assertEqual([[cheap]], [item['victims']
                                     for item in answer['considered']])

    def assert_a_member_sees_their_own(self, cheap):
        answer = self.explain(self.small, admin=False)
        self.assertEqual([cheap], [victim['server_id']
                                   for victim in answer['victims']])
        self.assertNotIn('host', answer)
        other = self.ask('explain', {'explain': {'flavor': self.small}},
                         admin=False, project='another')['explain']
        self.assertEqual((1, []), (other['victim_count'], other['victims']))

    def assert_counted(self):
        total = self.ask('statistics')['statistics']['total']
        self.assertEqual((1, {'gone': 1}, 1), (
            total['preemptions'], total['victims_by_status'],
            total['servers_placed']))
        listed, = self.ask('preemptions')['preemptions']
        self.assertEqual('create', listed['operation'])


class TestChances(ApiTestCase):

    def test_counts(self):
        self.add_hosts('host2')
        self.add_aggregate('zone', ['host2'], zone='west')
        self.boot_spot('a', 'host1', 100)
        self.boot_normal('n', host='host2')
        self.assertEqual([
            {'flavor': 'spot', 'availability_zone': 'nova',
             'preemptible': 1, 'normal': 2},
            {'flavor': 'spot', 'availability_zone': 'west',
             'preemptible': 1, 'normal': 1},
        ], self.ask('placement-chances?flavor=spot')['placement_chances'])
        self.assertEqual([
            {'flavor': self.big, 'availability_zone': 'nova',
             'preemptible': 0, 'normal': 1},
        ], self.ask(f'placement-chances?flavor={self.big}'
                    '&availability_zone=nova')['placement_chances'])

    def test_an_allocation_deleted_in_placement(self):
        server = self.boot_normal('n')['id']

        def chances():
            answer, = self.ask('placement-chances?flavor=spot')[
                'placement_chances']
            return answer['preemptible'], answer['normal']

        self.assertEqual((1, 1), chances())
        self.scheduler.preemption.clients.placement.delete_allocations(server)
        self.assertEqual((2, 2), chances())

    def test_a_part_of_an_allocation_deleted_in_placement(self):
        """Together with a victim it frees enough space."""
        self.boot_spot('a', 'host1', 100)
        server = self.boot_normal('n')['id']

        def normal():
            answer, = self.ask(f'placement-chances?flavor={self.big}')[
                'placement_chances']
            return answer['normal']

        self.assertEqual(0, normal())
        self.scheduler.preemption.clients.placement.delete_allocations(server)
        self.assertEqual(1, normal())


class TestSimulate(ApiTestCase):

    def simulate(self, server, code=202, **kwargs):
        return self.ask('simulate', {'simulate': {'server_id': server}},
                        code=code, **kwargs)

    def test_permissions_and_evictions(self):
        self.flags(maximum_notice_s=100, group='preemption')
        server = self.boot_spot('a', 'host1', 100)
        normal = self.boot_normal()['id']
        self.simulate(server, 404, admin=False, project='another')
        self.simulate(normal, 409, admin=False)
        self.simulate(normal, 404, admin=False, project='another')
        self.simulate('11111111-1111-4111-8111-111111111111', 404)
        self.assertEqual({server, normal}, self.alive())
        self.assert_ends_as_it_would(server)
        self.assert_one_that_is_ending()

    def assert_ends_as_it_would(self, server):
        decision = self.simulate(server, admin=False)['preemption']['id']
        self.wait_gone(server)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'the end')
        self.assert_consistent()
        shown = self.ask(f'preemptions/{decision}',
                         admin=False)['preemption']
        self.assertEqual(('done', 'simulate', None, 'gone'), (
            shown['status'], shown['operation'], shown['server'],
            shown['victims'][0]['status']))
        self.ask(f'preemptions/{decision}', admin=False, project='another',
                 code=404)

    def assert_one_that_is_ending(self):
        flavor = self.create_flavor(
            'slow', 1, 1024, 10, preemptible=True,
            **{'preemptible:notice_s': '100'})
        server = self.boot_spot('slow', 'host1', 100, flavor)
        decision = self.simulate(server)['preemption']['id']
        self.simulate(server, 409)
        self.assertEqual(decisions.CLAIMED,
                         self.decisions.get_decision(decision).status)
        self.api.post_server_action(server, {'os-stop': None})
        self.wait_gone(server)


class TestReservations(ApiTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host2')

    # Others are not told what hosts are called.
    def reserve(self, code=201, path='reservations', admin=True, **wanted):
        answer = self.ask(path, {'reservation': {'duration': 60, **wanted}},
                          admin, code)
        return next(iter(answer.values()))

    def test_properties_of_real_hosts(self):
        found = {item['name']: item for item in self.ask(
            'properties')['properties']}
        self.assertEqual(['host1', 'host2'],
                         found['hypervisor_hostname']['values'])
        for name, kind in (('vcpus', 'number'), ('inventory.VCPU', 'number'),
                           ('traits', 'list'), ('hypervisor_type', 'text')):
            self.assertEqual(kind, found[name]['type'])
        made = self.reserve(host_properties=[
            'and', ['=', '$hypervisor_hostname', 'host2'],
            ['in', 'COMPUTE_NODE', '$traits'],
            ['>=', '$vcpus', found['vcpus']['values'][0]]])
        self.assertEqual(['host2'], [item['name'] for item in made['hosts']])
        self.assert_extra_properties()

    def assert_extra_properties(self):
        wanted = {'host_properties': ['=', '$extra.rack', 'r1']}
        self.reserve(400, **wanted)
        host = self.ask('hosts/host1', {'host': {'extra': {'rack': 'r1'}}},
                        method='PATCH')['host']
        self.assertEqual('r1', host['properties']['extra.rack'])
        made = self.reserve(**wanted)
        self.assertEqual(['host1'], [item['name'] for item in made['hosts']])
        host = self.ask('hosts/host1')['host']
        self.assertEqual([made['id']], [item['id'] for item
                                        in host['reservations']])
        self.ask('hosts/host1', {'host': {'extra': {'rack': 'r2'}}},
                 method='PATCH')
        self.reserve(409, host_properties=['=', '$extra.rack', 'r2'])

    def test_hosts_with_only_preemptible_servers_are_vacant(self):
        self.boot_spot('a', 'host1', 100)
        self.boot_normal('n', host='host2')
        self.assertEqual(['host1'], self.reserve(
            200, 'reservations/preview')['hosts'])
        self.reserve(409, quantity=2)
        self.assertEqual('host1', self.reserve()['hosts'][0]['name'])
        self.reserve(409)
