# SPDX-License-Identifier: Apache-2.0
"""The Redfish emulator of sushy-tools, in a process of its own."""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from urllib import request
import uuid

# The emulated hardware takes 1 to 11 seconds for a switch; one will do.
_MAIN = """
from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver
fakedriver.random.randint = lambda low, high: low
main.main()
"""
_START_S = 120


class Emulator:
    """Fake systems behind one Redfish service, which remembers their state.

    :param names: of the systems
    """

    def __init__(self, *names):
        self._directory = tempfile.TemporaryDirectory()
        self.paths = {
            name: f'/redfish/v1/Systems/{uuid.uuid5(uuid.NAMESPACE_DNS, name)}'
            for name in names}
        self._config = f'{self._directory.name}/emulator.conf'
        with open(self._config, 'w', encoding='utf-8') as stream:
            systems = [
                {'uuid': path.rpartition('/')[2], 'name': name,
                 'power_state': 'Off', 'nics': []}
                for name, path in self.paths.items()]
            stream.write(f'SUSHY_EMULATOR_FAKE_SYSTEMS = {systems!r}\n'
                         f'SUSHY_EMULATOR_STATE_DIR = '
                         f'{self._directory.name!r}\n')
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self._port = probe.getsockname()[1]
        self.url = f'http://127.0.0.1:{self._port}'
        self._process = None
        self._log = f'{self._directory.name}/log'
        self.start()

    def start(self):
        with open(self._log, 'ab') as log:
            self._process = subprocess.Popen(
                [sys.executable, '-c', _MAIN, '--config', self._config,
                 '--fake', '-i', '127.0.0.1', '-p', str(self._port)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end_s = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(OSError):
                return self._get('/redfish/v1/')
            if self._process.poll() is not None or time.monotonic() > end_s:
                with open(self._log, encoding='utf-8') as log:
                    raise AssertionError(f'no emulator: {log.read()}')
            time.sleep(0.1)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        self.kill()
        self._directory.cleanup()

    def state(self, name):
        """Return the raw answer of the service."""
        return self._get(self.paths[name])['PowerState']

    def _get(self, path):
        with request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)
