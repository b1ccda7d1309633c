# SPDX-License-Identifier: Apache-2.0
"""Tests of the start of the API."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

from tests import processes

# In a process of its own: what was loaded stays loaded.
_PROGRAM = textwrap.dedent("""
    import sys
    from oslo_config import cfg
    from nova_preempt.api import application_factory
    from nova_preempt.cloud import boot_schema
    import nova_preempt.conf

    conf = cfg.ConfigOpts()
    nova_preempt.conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for enabled in (False, True):
        conf.set_override('enabled', enabled, 'backlog')
        application_factory.load(conf)
        print(boot_schema._schemas.cache_info().currsize,
              'nova.objects.request_spec' in sys.modules)
    before = set(sys.modules)
    boot_schema.check({'server': {
        'name': 'a', 'flavorRef': '1', 'imageRef': '', 'networks': 'none'}},
        '2.90')
    print(sorted(set(sys.modules) - before))
""")


class TestLoad(unittest.TestCase):

    def test_modules_of_the_first_request_are_loaded_at_the_start(self):
        """No module is loaded without a backlog."""
        self.assertEqual(
            ['0 False', '1 True', '[]'], subprocess.run(
                [sys.executable, '-c', _PROGRAM], check=True, text=True,
                capture_output=True, timeout=300).stdout.splitlines())


def make_application(path):
    from nova_preempt.api import application_factory
    application_factory.make_application([f'--config-file={path}'])


class TestLog(unittest.TestCase):

    def serve(self, *lines):
        """Serve; return the names of files in the log directory."""
        with tempfile.TemporaryDirectory() as folder:
            logs = pathlib.Path(folder, 'log')
            conf = pathlib.Path(folder, 'nova.conf')
            conf.write_text('\n'.join((
                '[DEFAULT]', f'state_path = {folder}',
                'transport_url = fake://', *lines, '[preemption_api]',
                'auth_strategy = noauth')).format(logs=logs))
            logs.mkdir()
            code, _out, err = processes.run(make_application, conf)
            self.assertEqual(0, code, err)
            return sorted(path.name for path in logs.iterdir())

    def test_a_directory_gets_one_of_our_name(self):
        """oslo.log would take that of the outermost file of the server."""
        self.assertEqual(['nova-preempt-api.log'],
                         self.serve('log_dir = {logs}'))

    def test_a_name_that_is_given_stays(self):
        self.assertEqual(['a.log'], self.serve('log_dir = {logs}',
                                               'log_file = a.log'))

    def test_no_file_where_none_is_wanted(self):
        self.assertEqual([], self.serve())
