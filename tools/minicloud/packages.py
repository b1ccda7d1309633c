# SPDX-License-Identifier: Apache-2.0
"""Debian packages of private servers."""

import os
import shutil

from minicloud import broker
from minicloud import databases
from minicloud import steps

_PACKAGES = {'mariadb': ('mariadb-server', databases.SERVER),
             'rabbitmq': ('rabbitmq-server', broker.SERVER)}


def missing(private):
    """Return the names of packages that are not installed."""
    return [package for package, file in
            (_PACKAGES[name] for name in private)
            if not os.path.exists(file)]


def install(names, log):
    command = ['apt-get', 'install', '--yes', '--no-install-recommends',
               *names]
    if os.geteuid() or not shutil.which('apt-get'):
        raise steps.StepFailed(f'missing, as root: {" ".join(command)}')
    env = {**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'}
    # NOTE: a new machine has no package lists. Without a network this fails,
    # and the installation may still work.
    steps.call(['apt-get', 'update'], env, log, good=range(256))
    steps.call(command, env, log)
