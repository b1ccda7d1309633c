# SPDX-License-Identifier: Apache-2.0
"""The page of energy, with measurements and a host that has failed."""

import datetime

from selenium.webdriver.common.by import By
import sqlalchemy as sa

from nova_preempt.db import models
from tests.dashboard import base

PAGE = '/admin/preemption_energy/'
HOUR = datetime.timedelta(hours=1)
HOST = 'compute1'


def _hours_ago(count):
    return datetime.datetime.now(datetime.timezone.utc).replace(
        tzinfo=None, microsecond=0) - count * HOUR


class TestEnergy(base.TestCase):
    """The small cloud has no power control: the rows are written here."""

    user = 'admin'

    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine(
            self.layout.database_url('nova_preempt'))
        self.addCleanup(self.engine.dispose)
        self._empty()
        self.addCleanup(self._empty)

    def _empty(self):
        with self.engine.begin() as session:
            for table in (models.PowerSample, models.HostPower):
                session.execute(sa.delete(table))

    def _insert(self, table, *rows):
        with self.engine.begin() as session:
            session.execute(sa.insert(table), rows)

    def _sample(self, hours_ago, watts):
        return {'sampled_at': _hours_ago(hours_ago), 'watts': watts,
                'watts_saved': 100.0, 'hosts_on': 3, 'hosts_busy': 2,
                'hosts_asleep': 1, 'cores_total': 40, 'cores_off': 10,
                'cores_used': 20}

    def test_nothing_was_measured(self):
        self.open(PAGE)
        self.wait_text('No power draw was measured in the last week.')
        self.wait_text('Power draw now\nunknown')
        self.assertEqual([], self.browser.find_elements(
            By.CSS_SELECTOR, 'svg.preempt-chart'))

    def test_chart(self):
        self._insert(models.PowerSample, *(
            self._sample(hours, None if 40 < hours < 50 else 500.0 + hours)
            for hours in range(80, 0, -1)))
        self.open(PAGE)
        self.wait_text('Power draw of the last week in watts')
        self.wait_text('Power draw now\n501 W')
        chart = self.browser.find_element(
            By.CSS_SELECTOR, 'svg.preempt-chart')
        # A gap in what is known is a gap in the line.
        lines = [line.get_attribute('points').split() for line in
                 chart.find_elements(By.TAG_NAME, 'polyline')]
        self.assertEqual([31, 40], [len(points) for points in lines])
        labels = [label.text for label in chart.find_elements(
            By.TAG_NAME, 'text')]
        self.assertIn('580 W', labels)
        # The newest point is the lowest of all, and at the right.
        left, right = lines[0][0].split(','), lines[1][-1].split(',')
        self.assertLess(float(left[0]), float(right[0]))
        self.assertLess(float(left[1]), float(right[1]))
        box = chart.find_element(By.TAG_NAME, 'polyline').rect
        self.assertGreater(box['width'], 100)
        self.picture('energy')

    def test_retry_of_a_boot(self):
        self._insert(models.HostPower, {
            'host': HOST, 'state': 'failed', 'since': _hours_ago(1),
            'reason': 'it does not answer'})
        self.open(PAGE)
        self.wait_text('Failed to boot')
        self.wait_text('it does not answer')
        self.press('Retry Boot')
        self.wait_text(f'Retried boot of: {HOST}')
        self.wait_text('Waking up')
        host, = self.admin.preemption.energy_hosts()
        self.assertEqual('waking', host.state)
