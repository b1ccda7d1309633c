# SPDX-License-Identifier: Apache-2.0
"""Stands for a WSGI server; imports nothing else of nova_preempt."""

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
