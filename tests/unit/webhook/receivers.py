# SPDX-License-Identifier: Apache-2.0
"""Receivers of webhooks: real HTTP and HTTPS servers on 127.0.0.1."""

import contextlib
import datetime
import functools
import http.server
import ipaddress
import json
import socket
import ssl
import tempfile
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = 'receiver.example'

_FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
_UNTIL = datetime.datetime(2120, 1, 1, tzinfo=datetime.timezone.utc)


@functools.cache
def certificate(name=NAME):
    """Return (certificate, key) of a self-signed certificate, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder(
        subject, subject, key.public_key(), x509.random_serial_number(),
        _FROM, _UNTIL).add_extension(x509.SubjectAlternativeName([
            x509.DNSName(name),
            x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]), False
    ).add_extension(x509.BasicConstraints(True, 0), True).sign(
        key, hashes.SHA256())
    return (made.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(serialization.Encoding.PEM,
                              serialization.PrivateFormat.PKCS8,
                              serialization.NoEncryption()))


def trusting(name=NAME):
    """Return a context of a client that trusts certificate()."""
    return ssl.create_default_context(
        cadata=certificate(name)[0].decode())


class _Handler(http.server.BaseHTTPRequestHandler):

    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.server.calls.append(
            (self.path, dict(self.headers.items()), body))
        with contextlib.suppress(OSError):
            self.server.answer(self)

    def log_message(self, *_arguments):
        """Print nothing."""


def accept(handler):
    """Answer 200."""
    status(200)(handler)


def status(code, **headers):
    """Return a function that answers with a status and headers."""
    def answer(handler):
        handler.send_response(code)
        for name, value in {'Content-Length': '2', **headers}.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.end_headers()
        handler.wfile.write(b'ok')
    return answer


class Receiver(http.server.ThreadingHTTPServer):
    """Records (path, headers, body) of each POST.

    :param name: of the certificate; None serves HTTP
    :ivar answer: a function of the handler
    """

    daemon_threads = True

    def __init__(self, name=NAME, answer=accept):
        super().__init__(('127.0.0.1', 0), _Handler)
        self.calls = []
        self.answer = answer
        self.scheme = 'https' if name else 'http'
        if name:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            with tempfile.NamedTemporaryFile() as file:
                file.write(b''.join(certificate(name)))
                file.flush()
                context.load_cert_chain(file.name)
            self.socket = context.wrap_socket(
                self.socket, server_side=True,
                do_handshake_on_connect=False)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def handle_error(self, *_arguments):
        """Print nothing: clients end connections early."""

    @property
    def port(self):
        return self.server_address[1]

    @property
    def url(self):
        return f'{self.scheme}://{NAME}:{self.port}/hook'

    def events(self):
        """Return the bodies of the calls as dicts."""
        return [json.loads(body) for _path, _headers, body in self.calls]

    def close(self):
        self.shutdown()
        self.server_close()
        self._thread.join()


@contextlib.contextmanager
def silent():
    """Return the port of a server that accepts and says nothing."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        yield server.getsockname()[1]
