# SPDX-License-Identifier: Apache-2.0
"""Figures at hand, kept in the background."""

import datetime
import gc
import os
import pathlib
import threading
import time

import fixtures
from oslo_config import cfg
import testtools

from nova_preempt import db
import nova_preempt.conf
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.db import energy_store
from nova_preempt.power import efficiency_cache
from tests import tables

NOW = datetime.datetime(2026, 11, 20, 12)
TIMEOUT_S = 60


class TableTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(self.conf)
        self.conf([])
        self.conf.set_override(
            'connection', f'sqlite:///{self.directory}/test.sqlite',
            'preemption_database')
        self.db = db.Database(self.conf)
        tables.make(self.db)
        self.log = self.useFixture(fixtures.FakeLogger('nova_preempt'))

    def measure(self, host, *values):
        energy_store.put_figures(self.db, [
            energy_store.HostEfficiency(host, *values, measured_at=NOW)])

    def write(self, text):
        path = self.directory / 'figures.yaml'
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        # Even where clocks of files are coarse.
        os.utime(path, ns=(before + 10 ** 9,) * 2)
        self.conf.set_override('figures_file', str(path), 'energy')


class TestRefresh(TableTestCase):

    def setUp(self):
        super().setUp()
        self.table = efficiency_cache.of(self.conf)

    def test_no_figures(self):
        self.assertEqual({}, self.table.all())
        self.table.refresh()
        self.assertEqual({}, self.table.all())
        self.assertIsNone(self.table.get('a'))
        self.assertIsNone(self.table.efficiencies().get('a'))
        self.assertEqual('', self.log.output)

    def test_measured_figures(self):
        self.measure('a', 1e12, 250.0, 100.0)
        self.measure('b', None, 250.0, None)
        self.table.refresh()
        self.assertEqual(4e9, self.table.efficiencies().get('a'))
        self.assertIsNone(self.table.efficiencies().get('b'))
        self.assertEqual({'a': 4e9}, self.table.efficiencies())
        self.assertEqual(efficiency_ranking.Figures(None, 250.0),
                         self.table.get('b'))
        energy_store.delete_figures(self.db, 'a')
        self.table.refresh()
        self.assertEqual(['b'], list(self.table.all()))

    def test_the_file_overrides_measured_figures(self):
        self.measure('a', 1e12, 250.0, 100.0)
        self.write('a: {watts: 500}\nb: {flops: 8, watts: 2}')
        self.table.refresh()
        self.assertEqual(efficiency_ranking.Figures(1e12, 500.0, 100.0),
                         self.table.get('a'))
        self.assertEqual(4.0, self.table.efficiencies().get('b'))

    def test_absurd_figures_are_none(self):
        self.measure('a', float('inf'), -5.0, 100.0)
        self.table.refresh()
        self.assertEqual(efficiency_ranking.Figures(None, None, 100.0),
                         self.table.get('a'))

    def read(self, ago_s, **watts):
        energy_store.put_readings(
            self.db, [energy_store.HostPowerReading(
                          host, value, NOW - datetime.timedelta(seconds=ago_s))
                      for host, value in watts.items()])

    def test_readings(self):
        self.table = efficiency_cache.EfficiencyCache(
            self.conf.energy, lambda: self.db, lambda: NOW)
        self.read(10, a=250.0, b=0.0, c=float('inf'))
        self.read(400, d=300.0)
        self.table.refresh()
        self.assertEqual([250.0, None, None, None, None], [
            self.table.watts_now(host) for host in 'abcde'])
        # They tell nothing of what a host delivers.
        self.assertEqual({}, self.table.all())
        self.conf.set_override('rank_by_readings', False, 'energy')
        self.table.refresh()
        self.assertIsNone(self.table.watts_now('a'))

    def test_a_file_that_changes(self):
        self.write('a: {flops: 8, watts: 2}')
        self.table.refresh()
        self.write('a: {flops: 8, watts: 4}')
        self.table.refresh()
        self.assertEqual(2.0, self.table.efficiencies().get('a'))

    def test_an_invalid_file_keeps_the_last_figures(self):
        self.write('a: {flops: 8, watts: 2}')
        self.table.refresh()
        self.write('a: {flops: 8, watts: none}')
        for _ in range(3):
            self.table.refresh()
        self.assertEqual(4.0, self.table.efficiencies().get('a'))
        self.assertEqual(1, self.log.output.count(
            "figures.yaml: host a: watts: 'none' is not a number"))
        (self.directory / 'figures.yaml').unlink()
        self.table.refresh()
        self.assertEqual(4.0, self.table.efficiencies().get('a'))
        self.assertIn('No such file', self.log.output)
        self.write('a: {flops: 8, watts: 8}')
        self.table.refresh()
        self.assertEqual(1.0, self.table.efficiencies().get('a'))
        self.assertIn('Can read [energy]figures_file again', self.log.output)

    def test_without_a_database(self):
        """The file and earlier measured figures count."""
        self.write('a: {flops: 8, watts: 2}')
        self.measure('b', 6.0, 2.0, None)
        self.table.refresh()
        with self.db.writer() as session:
            connection = session.connection()
            connection.exec_driver_sql('DROP TABLE power_figures')
        for _ in range(3):
            self.table.refresh()
        self.assertEqual(['a', 'b'], sorted(self.table.all()))
        self.assertEqual(1, self.log.output.count('Cannot read'))

    def test_unexpected_errors_do_not_end_the_refresh(self):
        self.write('a: {flops: 8, watts: 2}')
        broken = efficiency_cache.EfficiencyCache(self.conf.energy,
                                                  lambda: 1 / 0)
        broken.refresh()
        self.assertEqual(4.0, broken.efficiencies().get('a'))
        self.assertIn('ZeroDivisionError', self.log.output)


class TestThread(TableTestCase):

    def wait_for(self, condition):
        end = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_reads_in_the_background(self):
        self.useFixture(fixtures.MockPatchObject(
            efficiency_cache, 'REFRESH_S', 0.1))
        kept = efficiency_cache.of(self.conf)
        self.addCleanup(kept.stop)
        kept.start()
        self.measure('a', 6.0, 2.0, None)
        self.wait_for(lambda: kept.efficiencies().get('a') == 3.0)

    def test_readers_do_not_wait_for_the_database(self):
        self.measure('a', 6.0, 2.0, None)
        release = threading.Event()
        kept = efficiency_cache.EfficiencyCache(self.conf.energy,
                                                lambda: release.wait()
                                                and self.db)
        kept.start()
        kept.start()
        self.assertIsNone(kept.efficiencies().get('a'))
        self.assertEqual({}, kept.all())
        release.set()
        self.wait_for(lambda: kept.efficiencies().get('a') == 3.0)
        kept.stop()
        kept._thread.join(TIMEOUT_S)

    def test_one_thread(self):
        kept = efficiency_cache.of(self.conf)
        self.addCleanup(kept.stop)
        starters = [threading.Thread(target=kept.start) for _ in range(8)]
        for starter in starters:
            starter.start()
        for starter in starters:
            starter.join()
        first = kept._thread
        kept.start()
        self.assertIs(first, kept._thread)

    def test_the_thread_ends_with_the_table(self):
        kept = efficiency_cache.of(self.conf)
        kept.start()
        thread = kept._thread
        del kept
        gc.collect()
        thread.join(TIMEOUT_S)
        self.assertFalse(thread.is_alive())
