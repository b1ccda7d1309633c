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
"""What a WSGI server does, and nothing else of ours is imported for it."""

import sys

import nova.conf
import webob


def serve(paths):
    """Ask for paths; print the answers, and the options it knows."""
    from nova_preempt.api import wsgi
    for path in paths:
        status = webob.Request.blank(path).get_response(
            wsgi.application).status_int
        sys.stdout.write(f'{path} {status}\n')
    sys.stdout.write(' '.join(sorted(nova.conf.CONF.energy)) + '\n')
