# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-api: serves the REST API, for development.

In production, a WSGI server runs nova_preempt.api.wsgi:application.
"""

import socket
import socketserver
import sys
from wsgiref import simple_server

import nova.conf

from nova_preempt import exceptions
from nova_preempt.api import application_factory

CONF = nova.conf.CONF


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):

    daemon_threads = True

    def __init__(self, address, handler):
        if ':' in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)


def make_server(host, port, application,
                handler=simple_server.WSGIRequestHandler):
    """Return a server, bound but not serving yet."""
    return simple_server.make_server(host, port, application, _Server, handler)


def main(argv=None):
    try:
        application = application_factory.make_application(
            sys.argv[1:] if argv is None else argv)
    except exceptions.InvalidConfiguration as exc:
        print(f'nova-preempt-api: {exc}', file=sys.stderr)
        return 1
    options = CONF.preemption_api
    with make_server('127.0.0.1', options.bind_port, application) as server:
        print(f'Listening on 127.0.0.1:{server.server_port}', flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == '__main__':
    sys.exit(main())
