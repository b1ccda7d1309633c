# SPDX-License-Identifier: Apache-2.0
"""A real Apache with mod_wsgi serves the API, by our example."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / 'etc' / 'apache2' / 'nova-preempt-api.conf'
MODULES = pathlib.Path('/usr/lib/apache2/modules')
PATIENCE_S = 60
#: It does not run as root, and another user may not read this Python.
DISGUISE = ('unshare', '--user', '--map-user=1000', '--map-group=1000')
LOADED = ('mpm_event', 'authz_core', 'alias', 'wsgi')


def free_port():
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]


class TestApache(unittest.TestCase):

    def setUp(self):
        super().setUp()
        program = shutil.which('apache2')
        if program is None or not (MODULES / 'mod_wsgi.so').exists():
            self.skipTest('there is no Apache with mod_wsgi (Debian: apt-get '
                          'install apache2-bin libapache2-mod-wsgi-py3)')
        with (MODULES / 'mod_wsgi.so').open('rb') as module:
            wanted = f'libpython3.{sys.version_info.minor}.'.encode()
            if wanted not in module.read():
                self.skipTest('mod_wsgi is for another Python than this')
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / 'error.log'
        self.port = free_port()
        self.write_nova_conf()
        path = self.folder / 'apache2.conf'
        path.write_text(self.configuration())
        self.process = subprocess.Popen(
            [*(DISGUISE if os.geteuid() == 0 else ()), program,
             '-DFOREGROUND', '-f', str(path)],
            env={'OS_NOVA_CONFIG_DIR': str(self.folder),
                 'PATH': os.environ['PATH']},
            stderr=subprocess.STDOUT, stdout=self.log.open('a'))
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)

    def write_nova_conf(self):
        (self.folder / 'nova.conf').write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\n'
            'transport_url = fake://\n[preemption_api]\n'
            'auth_strategy = noauth\n')

    def configuration(self):
        """Return the example configuration, adapted to this machine."""
        text = EXAMPLE.read_text()
        text, count = re.subn(r'127\.0\.0\.1:8790',
                              f'127.0.0.1:{self.port}', text)
        self.assertEqual(2, count)
        text = text.replace('/usr/lib/python3/dist-packages/nova_preempt',
                            str(ROOT / 'nova_preempt'))
        text, count = re.subn(
            'user=nova group=nova processes=2',
            # The Python of mod_wsgi itself, with what is installed here.
            'processes=1 python-home=/usr '
            f'python-path={ROOT}:{sysconfig.get_path("purelib")}', text)
        self.assertEqual(1, count)
        modules = ''.join(
            f'LoadModule {name}_module {MODULES}/mod_{name}.so\n'
            for name in LOADED)
        return (f'ServerName localhost\nPidFile {self.folder}/pid\n'
                f'ErrorLog {self.log}\nDefaultRuntimeDir {self.folder}\n'
                f'{modules}'
                f'WSGISocketPrefix {self.folder}/wsgi\n{text}')

    def ask(self, path):
        """Return (status, text); wait until the server listens."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(
                        f'http://127.0.0.1:{self.port}{path}',
                        timeout=PATIENCE_S) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as exc:
                with exc:
                    return exc.code, exc.read().decode()
            except OSError:
                self.assertIsNone(self.process.poll(), self.log.read_text())
                self.assertLess(time.monotonic(), until, self.log.read_text())
                time.sleep(0.1)

    def test_apache_serves_the_api(self):
        status, _text = self.ask('/healthcheck')
        self.assertEqual(200, status, self.log.read_text())
        status, text = self.ask('/')
        self.assertEqual(200, status)
        self.assertTrue(json.loads(text)['versions'])
        # A token is asked for.
        self.assertEqual(401, self.ask('/v1/preemptions')[0])
