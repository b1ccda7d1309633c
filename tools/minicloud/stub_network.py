# SPDX-License-Identifier: Apache-2.0
"""A stub of the network API without networks.

Nova asks for ports, networks, quotas and security groups even for servers
without a network. Usage: stub_network.py ADDRESS PORT
"""

from http import server
import json
import re
import sys

GROUP = '11111111-1111-4111-8111-111111111111'


class Handler(server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def _answer(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        path = self.path.partition('?')[0].rstrip('/')
        status, body = find(self.command, path, self.headers.get('Host'))
        content = b'' if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - so called


def find(method, path, host):
    """Return (status, body) of an answer."""
    if path in ('', '/v2.0'):
        return 200, {'resources': [], 'versions': [{
            'id': 'v2.0', 'status': 'CURRENT',
            'links': [{'rel': 'self', 'href': f'http://{host}/v2.0/'}]}]}
    match = re.match(r'/v2\.0/([\w-]+)(?:\.json)?(/.+)?$', path)
    if match and method == 'DELETE':
        return 204, None
    if match and method == 'GET':
        name = match[1].replace('-', '_')
        if name == 'quotas':
            return 200, {'quota': {}}
        if not match[2]:
            return 200, {name: [] if name != 'security_groups' else [{
                'id': GROUP, 'name': 'default', 'description': '',
                'security_group_rules': [], 'project_id': '',
                'tenant_id': ''}]}
    return 404, {'NeutronError': {
        'type': 'NotFound', 'message': 'This is a stub.', 'detail': ''}}


def main():
    address, port = sys.argv[1:]
    server.ThreadingHTTPServer((address, int(port)), Handler).serve_forever()


if __name__ == '__main__':
    main()
