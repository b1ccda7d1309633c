# SPDX-License-Identifier: Apache-2.0
"""Sends one HTTP request to an address that was checked before.

NOTE: http.client and not requests, which would resolve the name again, follow
redirects, use proxies and the password file of the environment, and wait for
a receiver that sends a byte now and then.
"""

import contextlib
import dataclasses
import http.client
import socket
import ssl
import threading

# Of an answer: the receiver can finish, and nobody reads it.
_MOST_BYTES = 4096


class Failed(Exception):
    """The receiver has not answered as HTTP demands; the text says why."""


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """The most seconds until a connection, between two bytes, and in total."""

    connect_s: float = 5
    read_s: float = 10
    total_s: float = 15


def post(target, address, headers, body, tls, timeouts):
    """Send a POST request; return the status of the answer.

    :param target: a core webhook_targets.Target
    :param address: of its host
    :param body: bytes
    :param tls: an SSLContext of the module ssl
    :raises Failed:
    """
    is_late = threading.Event()
    try:
        with _connect(target, address, tls, timeouts) as connection:
            watchdog = threading.Timer(timeouts.total_s, _interrupt,
                                       [connection, is_late])
            watchdog.start()
            try:
                return _exchange(target, connection, headers, body)
            except Exception:
                if is_late.is_set():
                    raise TimeoutError from None
                raise
            finally:
                watchdog.cancel()
    except TimeoutError:
        raise Failed('it did not answer in time') from None
    except ssl.SSLCertVerificationError as exc:
        raise Failed(
            f'its certificate is not valid: {exc.verify_message}') from None
    except ssl.SSLError as exc:
        raise Failed(f'TLS failed: {exc.reason}') from None
    except OSError:
        raise Failed('the connection failed') from None
    except (http.client.HTTPException, ValueError):
        raise Failed('its answer is not HTTP') from None


def _connect(target, address, tls, timeouts):
    connection = socket.create_connection((address, target.port),
                                          timeouts.connect_s)
    connection.settimeout(timeouts.read_s)
    if target.scheme != 'https':
        return connection
    # The handshake comes later, when the watchdog watches.
    return tls.wrap_socket(connection, server_hostname=target.host,
                           do_handshake_on_connect=False)


def _exchange(target, connection, headers, body):
    if target.scheme == 'https':
        connection.do_handshake()
    client = http.client.HTTPConnection(target.host, target.port)
    client.sock = connection
    client.request('POST', target.path, body, {
        'Host': target.authority, 'User-Agent': 'nova-preempt',
        'Content-Type': 'application/json', 'Connection': 'close', **headers})
    answer = client.getresponse()
    with contextlib.suppress(OSError, http.client.HTTPException):
        answer.read(_MOST_BYTES)
    return answer.status


def _interrupt(connection, is_late):
    """Let all further reads and writes of a connection fail."""
    is_late.set()
    with contextlib.suppress(OSError):
        # NOTE: not that of SSLSocket, which another thread uses.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
