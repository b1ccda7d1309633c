# SPDX-License-Identifier: Apache-2.0

import json
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from nova import service
from oslo_utils import importutils

from nova_preempt.cmd import scheduler
from nova_preempt.cmd import scheduler_manager
from nova_preempt.scheduler import manager

# What Nova does with its arguments, and with the name of the manager.
SCRIPT = """
import json
import sys
from nova_preempt.cmd import scheduler
from nova import config
from oslo_utils import importutils
config.parse_args(sys.argv)
manager = importutils.import_class(scheduler.MANAGER)
print(json.dumps(manager._periodic_spacing))
"""


class TestMain(unittest.TestCase):

    def test_nova_is_told_of_our_manager(self):
        with mock.patch.dict(service.SERVICE_MANAGERS), mock.patch.object(
                scheduler.scheduler, 'main') as main, mock.patch.object(
                    scheduler, 'nova_conf'), mock.patch.object(
                        scheduler, 'CONF'), mock.patch.object(
                            scheduler, 'startup_option_rules'
                            ), mock.patch.object(scheduler, 'option_checks'):
            scheduler.main()
            name = service.SERVICE_MANAGERS['nova-scheduler']
        main.assert_called_once_with()
        self.assertIs(scheduler_manager.Manager,
                      importutils.import_class(name))

    def test_settles_once_it_has_started(self):
        with mock.patch.object(scheduler_manager.garbage_collection,
                               'settle') as settle, (
                mock.patch.object(manager.PreemptibleSchedulerManager,
                                  'post_start_hook')) as start:
            settle.side_effect = start.assert_called_once_with
            scheduler_manager.Manager.post_start_hook(
                object.__new__(scheduler_manager.Manager))
        settle.assert_called_once_with()

    def test_tasks_come_as_often_as_is_configured(self):
        """Nova's, too: it reads that as soon as its manager is imported."""
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as conf:
            conf.write('[scheduler]\n'
                       'discover_hosts_in_cells_interval = 13\n')
            conf.flush()
            done = subprocess.run(
                [sys.executable, '-W', 'ignore', '-c', SCRIPT,
                 '--config-file', conf.name],
                check=True, capture_output=True, text=True)
        self.assertEqual({'_discover_hosts_in_cells': 13,
                          '_refresh_preemptible_servers': 30,
                          '_repair_preemptions': 60},
                         json.loads(done.stdout))
