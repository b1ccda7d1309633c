# SPDX-License-Identifier: Apache-2.0

"""Starts Keystone alone, on SQLite."""

import getpass
import grp
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1.identity import v3
from minicloud import files

PASSWORD = 'secret'
# On a machine that does other things, too.
PATIENCE_S = 120
_POLL_S = 0.1


class Keystone:
    """Runs from its start to its end; the user "admin" may do everything.

    :param programs: the directory of keystone-manage and uwsgi
    """

    def __init__(self, programs):
        self._programs = pathlib.Path(programs)
        self._directory = pathlib.Path(tempfile.mkdtemp())
        self._process = None
        self.url = f'http://127.0.0.1:{_free_port()}/v3'

    def start(self):
        config = self._directory / 'keystone.conf'
        keys = [self._directory / name for name in ('tokens', 'credentials')]
        files.save(config, {
            'DEFAULT': {'use_stderr': 'true'},
            'database': {'connection':
                         f'sqlite:///{self._directory}/keystone.sqlite'},
            'fernet_tokens': {'key_repository': keys[0]},
            'fernet_receipts': {'key_repository': keys[0]},
            'credential': {'key_repository': keys[1]},
            # Else each password costs a quarter of a second.
            'identity': {'password_hash_rounds': 4}})
        owner = ('--keystone-user', getpass.getuser(), '--keystone-group',
                 grp.getgrgid(os.getgid()).gr_name)
        self._manage('db_sync')
        self._manage('fernet_setup', *owner)
        self._manage('credential_setup', *owner)
        self._manage('bootstrap', '--bootstrap-password', PASSWORD,
                     '--bootstrap-region-id', 'here',
                     '--bootstrap-public-url', self.url,
                     '--bootstrap-internal-url', self.url)
        self.resume()

    def resume(self):
        """Have it answer, again or for the first time."""
        with open(self._directory / 'log', 'ab') as log:
            self._process = subprocess.Popen(
                [self._programs / 'uwsgi', '--http-socket',
                 self.url.removeprefix('http://').removesuffix('/v3'),
                 '--module', 'keystone.wsgi.api:application', '--threads',
                 '4', '--die-on-term', '--need-app', '--lazy-apps',
                 '--master', '--add-header', 'Connection: close',
                 '--buffer-size', '65535', '--disable-logging'],
                env={**os.environ,
                     'OS_KEYSTONE_CONFIG_DIR': str(self._directory)},
                stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError((self._directory / 'log').read_text())
            time.sleep(_POLL_S)

    def pause(self):
        """Let Keystone answer no request for a while."""
        self._process.terminate()
        self._process.wait()

    def stop(self):
        if self._process is not None:
            self.pause()
        shutil.rmtree(self._directory)

    def token(self, user, project, **more):
        return self.session(user, project, **more).get_token()

    def session(self, user, project=None, **more):
        scope = {'project_name': project, 'project_domain_id': 'default',
                 } if project else {}
        return session.Session(v3.Password(
            self.url, username=user, password=PASSWORD,
            user_domain_id='default', **scope, **more))

    @property
    def admin(self):
        """Return an adapter of an administrator."""
        return adapter.Adapter(self.session('admin', 'admin'),
                               endpoint_override=self.url)

    def make(self, kind, **values):
        """Make a user, project or role, and return its id."""
        return self.admin.post(f'/{kind}s', json={kind: values}
                               ).json()[kind]['id']

    def make_user(self, name, **values):
        return self.make('user', name=name, password=PASSWORD,
                         domain_id='default', **values)

    def find(self, kind, name):
        return self.admin.get(f'/{kind}s?name={name}'
                              ).json()[f'{kind}s'][0]['id']

    def grant(self, user, project, role, method='PUT'):
        """Give a role, all by ids, or take it with "DELETE"."""
        self.admin.request(
            f'/projects/{project}/users/{user}/roles/{role}', method)

    def _manage(self, *words):
        done = subprocess.run(
            [self._programs / 'keystone-manage',
             f'--config-file={self._directory}/keystone.conf', *words],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f'{words[0]}: {done.stderr}')

    def _answers(self):
        try:
            with urllib.request.urlopen(self.url) as answer:
                return answer.status == 200
        except OSError:
            return False


def _free_port():
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]
