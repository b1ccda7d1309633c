# SPDX-License-Identifier: Apache-2.0
"""Replaces Nova's scheduler manager by ours in a test process.

Import this before any module of Nova, as nova.tests chooses how Nova runs.
"""

import atexit
import collections
import importlib.metadata
import json
import os
import shutil
import tempfile

# NOTE: first: it decides whether eventlet patches the process.
from nova.tests import functional  # noqa: F401

# isort: split
from nova import service
from nova import test
from nova.conf import paths
from oslo_config import cfg

MANAGER = 'nova_preempt.scheduler.manager.PreemptibleSchedulerManager'

#: Counts of calls of our manager in this process, written at its end, to check
#: that our manager was under test.
counts = collections.Counter()


def prepare():
    """Give this process its own state directory.

    Nova's default is where Nova is installed, which must not be written to.
    Its wheel has api-paste.ini elsewhere.
    """
    state = tempfile.mkdtemp(prefix='state-')
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    os.makedirs(os.path.join(state, 'etc', 'nova'))
    for path in importlib.metadata.files('nova'):
        if path.match('etc/nova/api-paste.ini'):
            os.symlink(path.locate().resolve(),
                       os.path.join(state, 'etc', 'nova', path.name))
    cfg.set_defaults(paths.ALL_OPTS, state_path=state)
    return state


def install(state):
    """Make Nova's tests use our manager, ready to preempt."""
    # oslo.config reads these in addition to configuration files.
    os.environ.update({
        'OS_PREEMPTION__AUTH_TYPE': 'none',
        'OS_PREEMPTION__ENDPOINT_OVERRIDE': 'http://127.0.0.1:9/v2.1',
        'OS_PREEMPTION_DATABASE__CONNECTION':
            f'sqlite:///{state}/nova_preempt.sqlite',
    })
    from nova_preempt.scheduler import manager as ours
    service.SERVICE_MANAGERS['nova-scheduler'] = MANAGER
    _count(ours.PreemptibleSchedulerManager)
    _close_after_tests(ours.PreemptibleSchedulerManager, test.TestCase)
    _install_in_unit_tests(ours.PreemptibleSchedulerManager)


def _install_in_unit_tests(manager):
    from nova.tests.unit.scheduler import test_manager

    for value in vars(test_manager).values():
        if isinstance(value, type) and hasattr(value, 'manager_cls'):
            value.manager_cls = manager


def _count(manager):
    """Count starts and requests of our manager."""
    start = manager.start_preemption
    select = manager.select_destinations

    def start_preemption(self):
        start(self)
        counts['started'] += 1
        counts['active'] += self.preemption is not None

    def select_destinations(self, *args, **kwargs):
        counts['requests'] += 1
        counts['active_requests'] += self.preemption is not None
        return select(self, *args, **kwargs)

    manager.start_preemption = start_preemption
    manager.select_destinations = select_destinations


def _close_after_tests(manager, test_case):
    """Stop the heartbeats of a test's schedulers when the test ends.

    Nova's tests stop a service, but its manager is not told of that. A
    heartbeat would renew its lease in the database until the process ends.
    """
    running = []
    start = manager.start_preemption
    set_up = test_case.setUp

    def start_preemption(self):
        start(self)
        if self.preemption is not None:
            running.append(self.preemption.process)

    def close():
        while running:
            running.pop().close()

    def setUp(self):
        # The first cleanup runs last, after those that stop services.
        self.addCleanup(close)
        set_up(self)

    manager.start_preemption = start_preemption
    test_case.setUp = setUp


def tell_counts(directory):
    """Write the counts into this directory at the end of the process."""
    @atexit.register
    def write():
        path = os.path.join(directory, f'counts-{os.getpid()}.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(counts, file)
