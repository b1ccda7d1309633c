# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus reads our metrics, and goes by our alerting rules."""

import json
import pathlib
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

from nova_preempt import metrics
from tests import prometheus_tools
from tests.unit import test_alerts
from tests.unit import test_dashboard

PATIENCE_S = 60
#: Labels of what is counted here alone.
MARK = 'scraped'
#: Labels of metrics that are asked for by name.
NAMED = {
    metrics.PHASES: [(phase,) for phase in ('choose', 'claim', 'end')],
    metrics.EVICTED_SHARE: [(MARK, MARK, '24')],
    metrics.EVICTED_LIFE: [(MARK, MARK, '24')]}


def free_port():
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]


def children():
    """Return the samples of some metrics, with their labels."""
    for attribute in prometheus_tools.series():
        metric = getattr(metrics, attribute)
        if metric in NAMED:
            for labels in NAMED[metric]:
                yield metric, labels, metric.labels(*labels)
        elif metric._labelnames:
            labels = (MARK,) * len(metric._labelnames)
            yield metric, labels, metric.labels(*labels)
        else:
            yield metric, (), metric


class TestScrape(unittest.TestCase):

    def setUp(self):
        super().setUp()
        program = prometheus_tools.program(self, 'prometheus')
        port = free_port()
        metrics.ENGINE_ACTS.set(0)
        server, thread = metrics.serve(port, '127.0.0.1')
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(self.forget, list(children()))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        config = pathlib.Path(folder.name, 'prometheus.yml')
        config.write_text(yaml.safe_dump({
            'global': {'scrape_interval': '200ms', 'scrape_timeout': '200ms',
                       'evaluation_interval': '200ms'},
            'rule_files': [str(test_alerts.RULES)],
            'scrape_configs': [{
                'job_name': 'nova-preempt', 'static_configs': [
                    {'targets': [f'127.0.0.1:{port}']}]}]}))
        own = free_port()
        self.url = f'http://127.0.0.1:{own}/api/v1'
        self.log = pathlib.Path(folder.name, 'log')
        with self.log.open('w') as log:
            self.process = subprocess.Popen(
                [program, f'--config.file={config}',
                 f'--storage.tsdb.path={folder.name}/data',
                 f'--web.listen-address=127.0.0.1:{own}'],
                stdout=log, stderr=log)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)

    @staticmethod
    def forget(found):
        for metric, labels, child in found:
            if labels:
                metric.remove(*labels)
            elif metric._type == 'gauge':
                child.set(0)

    def ask(self, path, **query):
        """The data of an answer, None while there is none."""
        try:
            with urllib.request.urlopen(
                    f'{self.url}/{path}?{urllib.parse.urlencode(query)}',
                    timeout=10) as answer:
                return json.load(answer)['data']
        except urllib.error.HTTPError as exc:
            if exc.code != 503:               # it is still starting
                raise
        except OSError:
            self.assertIsNone(self.process.poll(), self.log.read_text())
        return None

    def wait(self, what, see):
        """Wait until see() returns something, and return that."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = see()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f'{what}: not within {PATIENCE_S} s')

    def alerts(self):
        """Return {name: state} of pending and firing alerts."""
        data = self.ask('alerts') or {'alerts': []}
        return {alert['labels']['alertname']: alert['state']
                for alert in data['alerts']}

    def see_target(self):
        data = self.ask('targets') or {'activeTargets': []}
        return [target for target in data['activeTargets']
                if target['health'] == 'up']

    def see_value(self, expression):
        return (self.ask('query', query=expression) or {}).get('result')

    def count(self):
        for metric, _labels, child in children():
            if metric._type == 'histogram':
                child.observe(1)
            elif metric is metrics.PAUSED:
                child.set(1)
            elif metric._type == 'gauge':
                child.set(metric is metrics.ENGINE_ACTS)
            else:
                child.inc(20)

    def test_alerts_and_panels(self):
        target, = self.wait('a target that is up', self.see_target)
        self.assertEqual('', target['lastError'])
        rules = [rule for group in self.ask('rules')['groups']
                 for rule in group['rules']]
        self.assertEqual([rule['alert'] for rule in test_alerts.rules()],
                         [rule['name'] for rule in rules])
        # Nobody acts. (What else there is other tests have left.)
        self.wait('an alert', lambda: self.alerts().get(
            'NovaPreemptEngineAbsent') == 'pending')

        self.wait('a first look', lambda: self.see_value(
            'nova_preempt_engine_task_failures_total == 0'))
        self.count()
        wanted = {
            # At once, or after they have held for a time.
            'NovaPreemptEngineTaskFails': 'firing',
            'NovaPreemptStuckVictims': 'firing',
            'NovaPreemptVictimsInVain': 'firing',
            'NovaPreemptPowerErrors': 'firing',
            'NovaPreemptRefusals': 'pending',
            'NovaPreemptPaused': 'pending'}
        self.wait('alerts', lambda: (
            wanted.items() <= self.alerts().items()
            and 'NovaPreemptEngineAbsent' not in self.alerts()))
        self.assertEqual({'ok'}, {
            rule['health'] for group in self.ask('rules')['groups']
            for rule in group['rules']})
        for expression in test_dashboard.expressions():
            self.wait(expression, lambda expression=expression:
                      self.see_value(expression))
