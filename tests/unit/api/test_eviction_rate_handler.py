# SPDX-License-Identifier: Apache-2.0
"""Rates of evictions, by API and openstack."""

import datetime
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.db import decisions
from nova_preempt.db import eviction_samples
from nova_preempt.db import models
from tests.unit.api import base
from tests.unit.client import test_preemption_commands

HOUR = datetime.timedelta(hours=1)
ZONES = {base.HOST: 'az1'}


def server(project, flavor='spot', node=base.HOST):
    return mock.Mock(project_id=project, flavor=flavor, node=node)


class RateCase:

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(
            timeutils, 'utcnow', return_value=base.NOW + HOUR))

    def sample(self, servers, hours):
        return eviction_samples.record(self.db, servers, ZONES,
                                       base.NOW + hours * HOUR)

    def evict(self, name, project, flavor='spot', lifetime_s=7200, **values):
        victim = decisions.Victim(
            base.make_uuid(name), project, '', flavor, 30, status='gone',
            ended_at=base.NOW - HOUR / 2, lifetime_s=lifetime_s)
        self.decisions.create_decision(decisions.Decision(
            base.make_uuid(f'of-{name}'), '', status='done', host=base.HOST,
            victims=(victim,), **{'operation': 'create', **values}))

    def fill(self):
        servers = [server(project) for project in 'abc' for _ in range(4)]
        self.sample(servers, -1)
        self.evict('v', 'a')
        self.evict('w', 'b', lifetime_s=10000)
        # Neither is early.
        self.evict('x', 'c', operation='maximum_runtime')
        self.evict('y', 'c', operation='simulate')
        return self.sample([*servers, server('a', 'big')], 0)


class TestRates(RateCase, base.ApiTestCase):

    microversion = '1.8'

    def rates(self, query='', token='admin:z'):
        return self.get(f'/v1/eviction-rates{query}', token)['eviction_rates']

    def test_administrators_see_numbers(self):
        recorded = self.fill()
        self.assertEqual(2 / 12, recorded[-1].share)
        found = self.rates('?flavor=spot')
        self.assertEqual([{
            'flavor': 'spot', 'availability_zone': 'az1', 'hours': hours,
            'evicted_share': '15-20%', 'median_life': '1-6h',
            'exact_share': 2 / 12, 'median_life_s': 8600, 'evictions': 2,
            'server_hours': 12} for hours in (24, 720)], found)
        self.assertEqual({'spot', 'big'}, {
            item['flavor'] for item in self.rates()})

    def test_users_see_ranges(self):
        self.fill()
        found = self.rates('?flavor=spot&flavor=big', 'u:p')
        self.assertEqual([{
            'flavor': 'spot', 'availability_zone': 'az1', 'hours': hours,
            'evicted_share': '15-20%', 'median_life': '1-6h'}
            for hours in (24, 720)], found)
        # For one of the three there are two others.
        self.assertEqual([], self.rates('?flavor=spot', 'u:a'))
        self.assertEqual([], self.rates(
            '?flavor=spot&availability_zone=az2', 'u:p'))

    def test_users_name_flavors(self):
        error = self.get('/v1/eviction-rates', 'u:p', 403)['error']
        self.assertIn('see all flavors; name some', error['message'])

    def test_nothing(self):
        self.assertEqual([], self.rates())
        self.microversion = '1.7'
        self.get('/v1/eviction-rates', 'admin:z', 404)

    def test_old_samples_are_deleted(self):
        self.fill()
        self.sample([], 720)
        with self.db.reader() as session:
            self.assertEqual([], session.query(models.EvictionSample).all())

    def test_each_eviction_counts_once(self):
        self.fill()
        self.assertEqual(2, self.sample([], 0.5)[-1].evictions)


class TestCommand(RateCase, test_preemption_commands.ClientTestCase):

    def test_list(self):
        self.fill()
        found = self.json('preemption', 'rate', 'list', '--flavor', 'spot')
        self.assertEqual({
            'Flavor': 'spot', 'Availability Zone': 'az1', 'Hours': 24,
            'Evicted': '15-20%', 'Median Life': '1-6h'}, found[0])
        text = self.openstack('preemption', 'rate', 'list', '--long', '--sort',
                              'hours:desc', token='admin:z')
        self.assertRegex(text, r'\| spot +\| az1 +\| +720 \| 15-20% +\| 1-6h '
                         r'+\| +2 +\| 12 +\| 0\.1667 \| 8600 ')
        self.assertIn('Too few servers of other projects', self.openstack(
            'preemption', 'rate', 'list', '--flavor', 'big'))
        self.assertEqual(
            'Only administrators see all flavors; name some.\n',
            self.openstack('preemption', 'rate', 'list', code=1))
