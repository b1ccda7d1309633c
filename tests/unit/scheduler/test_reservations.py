# SPDX-License-Identifier: Apache-2.0
"""The filter, the weigher and the refusal, on leases that stand still."""

import types
import unittest
from unittest import mock

from nova import exception
from nova import objects
import nova.conf
from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights
from nova.scheduler.weights import ram

from nova_preempt.cloud import request_specs
from nova_preempt.core.reservation import leases as core
from nova_preempt.reservation import lease_cache
from nova_preempt.scheduler import filters
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import weights
from nova_preempt.scheduler.filters import reservation_filter
from nova_preempt.scheduler.weights import reservation_weigher
from tests.unit.reservation import support

CONF = nova.conf.CONF
objects.register_all()

LOGGER = 'nova_preempt.reservation.lease_cache'

UUID = '155d900f-4e14-4e4c-a73d-069cbf4541e6'


def host(name, **values):
    # The name of the service is not that of the node.
    return types.SimpleNamespace(**{
        'host': f'service-{name}', 'nodename': name, 'aggregates': [],
        'free_ram_mb': 0, 'uuid': name, **values})


def spec(hints=None, project='p', **extra_specs):
    return objects.RequestSpec(
        instance_uuid=UUID, project_id=project,
        scheduler_hints={key: value if isinstance(value, list) else [value]
                         for key, value in (hints or {}).items()},
        flavor=objects.Flavor(extra_specs=extra_specs))


def hint(*lease_ids, **kwargs):
    return spec({'reservation': list(lease_ids)}, **kwargs)


def spot(**extra_specs):
    return spec(**{'preemptible:enabled': 'true', **extra_specs})


class ReservationTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.override('filter_scheduler',
                      enabled_filters=['ReservationFilter'])

    def override(self, group, **values):
        for name, value in values.items():
            CONF.set_override(name, value, group)
            self.addCleanup(CONF.clear_override, name, group)

    def use(self, *found, now_s=0, **values):
        known = support.Fixed(*found, now_s=now_s, **values)
        self.enterContext(mock.patch.object(
            lease_cache, 'current', lambda conf: known))
        return known


class TestFilter(ReservationTestCase):

    def passing(self, spec_obj, names='ABCD', cls=None):
        handler = filters.HostFilterHandler()
        return ''.join(state.nodename for state in
                       handler.get_filtered_objects(
                           [(cls or reservation_filter.ReservationFilter)()],
                           [host(name) for name in names], spec_obj))

    def test_is_found(self):
        self.assertIn(reservation_filter.ReservationFilter,
                      filters.all_filters())

    def test_normal(self):
        """004-e: A is reserved; guard_s keeps others off B, too."""
        self.use(support.lease('r1', 0, 100, 'A'),
                 support.lease('r2', 50, 150, 'B'),
                 support.lease('r3', 200, 300, 'C'))
        for guard_s, expected in ((0, 'BCD'), (49, 'BCD'), (50, 'CD'),
                                  (199, 'CD'), (200, 'D')):
            self.override('reservation', guard_s=guard_s)
            self.assertEqual(expected, self.passing(spec()))

    def test_preemptible_until_its_notice(self):
        self.override('preemption', notice_s=30, termination_timeout_s=60,
                      minimum_notice_s=0, maximum_notice_s=600,
                      minimum_runtime_s=0)
        self.use(support.lease('r1', 0, 1000, 'A'),
                 support.lease('r2', 120, 1000, 'B'),
                 support.lease('r3', 121, 1000, 'C'),
                 support.lease('r4', 500, 1000, 'D'))
        self.assertEqual('CD', self.passing(spot()))
        self.assertEqual('', self.passing(spec()))
        self.assertEqual(
            'D', self.passing(spot(**{'preemptible:notice_s': '31'})))
        # What it is promised to run for is before the notice.
        self.assertEqual('', self.passing(
            spot(**{'preemptible:minimum_runtime_s': '380'})))
        self.assertEqual('D', self.passing(
            spot(**{'preemptible:minimum_runtime_s': '379'})))

    def test_hinted(self):
        self.use(support.lease('r1', 0, 100, 'A', 'B',
                               status=core.ACTIVE),
                 support.lease('r2', 50, 100, 'C'),
                 support.lease('r3', 0, 100, 'D', status=core.ACTIVE),
                 now_s=10)
        self.assertEqual('AB', self.passing(hint('r1')))
        self.assertEqual('ABD', self.passing(hint('r1', 'r3')))
        self.assertEqual('', self.passing(hint('r1', project='q')))
        self.assertEqual('', self.passing(hint('r2')))
        self.assertEqual('', self.passing(hint('r4')))
        # A preemptible one is in it like any other.
        self.assertEqual('AB', self.passing(
            hint('r1', **{'preemptible:enabled': 'true'})))

    def test_rebuild(self):
        self.use(support.lease('r1', 0, 100, 'A'))
        for item in (spec({'_nova_check_type': 'rebuild'}),
                     spec({'_nova_check_type': 'rebuild',
                           'reservation': 'r2'})):
            self.assertEqual('ABCD', self.passing(item))

    def test_the_lease_service_does_not_answer(self):
        self.enterContext(self.assertLogs(LOGGER, 'WARNING'))
        for mode, normal, hinted in (
                ('fail_closed', 'BCD', ''), ('fail_open', 'ABCD', 'A')):
            with self.subTest(mode):
                monotonic = support.Clock()
                known = self.use(
                    support.lease('r1', 0, 100, 'A', status=core.ACTIVE),
                    monotonic=monotonic, on_unavailable=mode)
                self.assertEqual('BCD', self.passing(spec()))
                known._service.answer = ConnectionError()
                known.ask()
                monotonic.now_s = 61
                self.assertEqual(normal, self.passing(spec()))
                self.assertEqual(normal, self.passing(spot()))
                self.assertEqual(hinted, self.passing(hint('r1')))

    def test_the_lease_service_has_never_answered(self):
        self.enterContext(self.assertLogs(LOGGER, 'WARNING'))
        for mode, normal in (('fail_closed', ''), ('fail_open', 'ABCD')):
            with self.subTest(mode):
                known = self.use(on_unavailable=mode)
                known._service.answer = ConnectionError()
                self.assertEqual(normal, self.passing(spec()))
                self.assertEqual('', self.passing(hint('r1')))

    def test_one_host_at_a_time(self):
        self.use(support.lease('r1', 0, 100, 'A', status=core.ACTIVE))
        one = reservation_filter.ReservationFilter()
        self.assertTrue(one.host_passes(host('A'), hint('r1')))
        self.assertFalse(one.host_passes(host('A'), spec()))

    def test_asks_for_no_host(self):
        """The service is called in the background."""
        known = self.use(support.lease('r1', 0, 100, 'A'))
        for _ in range(10):
            self.passing(spec(), names=[str(n) for n in range(100)])
        self.assertEqual(1, known._service.asked)

    def test_in_the_hands_of_nova(self):
        """Nova's own handler, as in a stock nova-scheduler."""
        self.use(support.lease('r1', 0, 100, 'A'))
        self.assertEqual(['B'], [state.nodename for state in (
            nova_filters.HostFilterHandler().get_filtered_objects(
                [reservation_filter.ReservationFilter()],
                [host('A'), host('B')], spec()))])


class TestWeigher(ReservationTestCase):

    leases = (support.lease('r1', 0, 100, 'A', status=core.ACTIVE),
              support.lease('r2', 50, 150, 'B'),
              support.lease('r3', 200, 300, 'C'))

    def order(self, spec_obj, *hosts):
        weighers = [reservation_weigher.ReservationFreeTimeWeigher(),
                    ram.RAMWeigher()]
        handler = nova_weights.HostWeightHandler()
        return ''.join(weighed.obj.nodename for weighed in
                       handler.get_weighed_objects(weighers, list(hosts),
                                                   spec_obj))

    def test_is_found(self):
        self.assertIn(reservation_weigher.ReservationFreeTimeWeigher,
                      weights.all_weighers())

    def test_time_until_the_next_reservation(self):
        """004-e."""
        self.use(*self.leases)
        weigher = reservation_weigher.ReservationFreeTimeWeigher()
        self.assertEqual(
            [0, 50, 200, reservation_weigher.NEVER_S],
            [weigher._weigh_object(host(name), spec()) for name in 'ABCD'])

    def test_farthest_first(self):
        """This holds for any distance and any weight of RAM."""
        self.use(*self.leases)
        hosts = [host(name, free_ram_mb=ram_mb) for name, ram_mb
                 in zip('BCD', (3, 2, 1), strict=True)]
        self.assertEqual('CB', self.order(spec(), *hosts[:2]))
        self.assertEqual('DCB', self.order(spec(), *hosts))
        self.assertEqual('DCB', self.order(spot(), *hosts))

    def test_never_is_never(self):
        """Ten years are as good as no reservation: RAM decides."""
        self.use(support.lease('r1', reservation_weigher.NEVER_S + 5,
                               reservation_weigher.NEVER_S + 6, 'A'))
        self.assertEqual('AB', self.order(
            spec(), host('A', free_ram_mb=2), host('B', free_ram_mb=1)))

    def test_requests_for_a_reservation(self):
        self.use(*self.leases)
        self.assertEqual('BCD', self.order(
            hint('r1'), *(host(name, free_ram_mb=ram_mb) for name, ram_mb
                          in zip('BCD', (3, 2, 1), strict=True))))
        self.assertEqual(
            0, reservation_weigher.ReservationFreeTimeWeigher()._weigh_object(
                host('C'), hint('r1')))

    def test_without_the_filter_no_lease_is_read(self):
        known = self.use(*self.leases)
        self.override('filter_scheduler', enabled_filters=['ComputeFilter'])
        self.assertEqual('BC', self.order(
            spec(), host('C', free_ram_mb=1), host('B', free_ram_mb=2)))
        self.assertEqual(0, known._service.asked)

    def test_multiplier(self):
        self.use(*self.leases)
        hosts = host('B', free_ram_mb=2), host('C', free_ram_mb=1)
        self.override('filter_scheduler',
                      reservation_free_time_weight_multiplier=0.0)
        self.assertEqual('BC', self.order(spec(), *hosts))
        aggregate = types.SimpleNamespace(metadata={
            'reservation_free_time_weight_multiplier': '10'})
        hosts[1].aggregates = [aggregate]
        self.assertEqual('CB', self.order(spec(), *hosts))


class TestAdmission(ReservationTestCase):

    def setUp(self):
        super().setUp()
        self.known = self.use(
            support.lease('now', 0, 100, 'A', status=core.ACTIVE),
            support.lease('soon', 50, 100, 'B'), now_s=10)
        self.operation = 'create'

    def admit(self, spec_obj):
        reservation_filter.admit(request_context.RequestContext(
            None, spec_obj, (UUID,), get_operation=lambda: self.operation))

    def assert_refused(self, spec_obj, reason):
        with self.assertRaisesRegex(exception.NoValidHost, reason):
            self.admit(spec_obj)

    def test_good(self):
        for spec_obj in (spec(), spot(), hint('now')):
            before = dict(spec_obj.scheduler_hints)
            self.admit(spec_obj)
            self.assertEqual(before, spec_obj.scheduler_hints)

    def test_bad(self):
        self.assert_refused(hint('soon'), 'No valid host was found. '
                            'Reservation soon is not active yet: it starts '
                            'at 1970-01-01T00:00:50Z.')
        self.assert_refused(hint('none'), "There is no reservation 'none' of")
        self.assert_refused(hint('now', project='q'),
                            "There is no reservation 'now' of")

    def test_without_the_filter(self):
        self.override('filter_scheduler', enabled_filters=['ComputeFilter'])
        self.admit(hint('none'))
        self.assertEqual(0, self.known._service.asked)

    def test_a_server_that_outlives_its_reservation(self):
        """It is moved, or unshelved, like any other."""
        self.operation = 'unshelve'
        for lease_id in ('soon', 'none'):
            spec_obj = spec({'reservation': lease_id, 'other': 'x'})
            self.admit(spec_obj)
            self.assertEqual({'other': ['x']}, spec_obj.scheduler_hints)
        spec_obj = hint('now')
        self.admit(spec_obj)
        self.assertEqual({'reservation': ['now']}, spec_obj.scheduler_hints)

    def test_a_server_is_not_moved_while_leases_are_unknown(self):
        self.operation = 'unshelve'
        self.known.view()
        self.known._service.answer = ConnectionError()
        with self.assertLogs(LOGGER, 'WARNING'):
            self.assert_refused(hint('none'), 'does not answer')


class TestHint(unittest.TestCase):

    def test_forms(self):
        for value, expected in ((['r'], ('r',)), (['r', 's'], ('r', 's')),
                                ([], ())):
            self.assertEqual(expected, request_specs.reservations(
                objects.RequestSpec(scheduler_hints={'reservation': value})))
        self.assertEqual((), request_specs.reservations(
            objects.RequestSpec(scheduler_hints=None)))
        self.assertEqual((), request_specs.reservations(objects.RequestSpec()))
