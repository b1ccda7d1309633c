# SPDX-License-Identifier: Apache-2.0
"""Our metrics, and the programs of Debian's package prometheus."""

import re
import shutil
import subprocess

from prometheus_client import metrics as client

from nova_preempt import metrics


def series():
    """Return {attribute of nova_preempt.metrics: series names}."""
    found = {}
    for attribute, metric in vars(metrics).items():
        if isinstance(metric, client.MetricWrapperBase):
            suffixes = {'counter': ('_total',), 'gauge': ('',),
                        'histogram': ('_bucket', '_sum', '_count')}
            found[attribute] = {metric._name + suffix for suffix in
                                suffixes[metric._type]}
    return found


def asked(expression):
    """The names of ours in an expression of PromQL, as a set."""
    return set(re.findall(r'nova_preempt_\w+', expression))


def program(test, name):
    """Return its path; skip the test if it is not installed."""
    found = shutil.which(name)
    if found is None:
        test.skipTest(f'there is no {name} (Debian: apt-get install '
                      'prometheus)')
    return found


def check_rules(test, path):
    """Fail unless promtool takes this file of rules."""
    found = subprocess.run(
        [program(test, 'promtool'), 'check', 'rules', str(path)],
        capture_output=True, text=True, check=False)
    test.assertEqual(0, found.returncode, found.stdout + found.stderr)
