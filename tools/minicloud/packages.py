# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
