# SPDX-License-Identifier: Apache-2.0
"""Debian's packages of what has to run privately."""

import os
import shutil

from minicloud import broker
from minicloud import databases
from minicloud import steps

_PACKAGES = {'mariadb': ('mariadb-server', databases.SERVER),
             'rabbitmq': ('rabbitmq-server', broker.SERVER)}


def missing(private):
    """Names of packages that are not there."""
    return [package for package, file in
            (_PACKAGES[name] for name in private)
            if not os.path.exists(file)]


def install(names, log):
    command = ['apt-get', 'install', '--yes', '--no-install-recommends',
               *names]
    if os.geteuid() or not shutil.which('apt-get'):
        raise steps.StepFailed(f'missing, as root: {" ".join(command)}')
    env = {**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'}
    # A machine that is new knows no packages. What one that reaches nobody
    # knows may do.
    steps.call(['apt-get', 'update'], env, log, good=range(256))
    steps.call(command, env, log)
