#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Receives the events of a project's webhook, behind a proxy with TLS.

    WEBHOOK_SECRET=whsec_... python3 receiver.py 8080

It needs the standard library only. The signature is that of the specification
"Standard Webhooks", whose libraries do the same as verify().
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import time

#: Older events may have been recorded by somebody who sends them again.
WINDOW_S = 300

#: Bytes of an event at most.
MOST_BYTES = 100_000


class Invalid(Exception):
    """The event was not sent by the cloud, or not now."""


def verify(secret, headers, body, now_s):
    """Return the id and the content of an event.

    :param secret: "whsec_..."
    :param headers: of the request, in a mapping that ignores case
    :param body: of the request, as bytes
    :param now_s: seconds since the epoch
    :raises Invalid:
    """
    event_id = headers.get('webhook-id', '')
    sent_s = headers.get('webhook-timestamp', '')
    if not sent_s.isdecimal() or abs(now_s - int(sent_s)) > WINDOW_S:
        raise Invalid('It is too old, or the clocks differ.')
    key = base64.b64decode(secret.removeprefix('whsec_'))
    expected = base64.b64encode(hmac.digest(
        key, f'{event_id}.{sent_s}.'.encode() + body, hashlib.sha256))
    # There may be several, each with its version.
    for signature in headers.get('webhook-signature', '').split():
        version, _, value = signature.partition(',')
        if version == 'v1' and hmac.compare_digest(value.encode(), expected):
            return event_id, json.loads(body)
    raise Invalid('The signature is wrong.')


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers 204 to events, 400 to anything else."""

    secret = ''
    #: {id: when it came}, since an event may come twice.
    seen = {}

    def do_POST(self):
        now_s = int(time.time())
        length = min(int(self.headers.get('Content-Length', 0)), MOST_BYTES)
        try:
            event_id, event = verify(self.secret, self.headers,
                                     self.rfile.read(length), now_s)
        except Invalid as exc:
            self.send_error(400, str(exc))
            return
        for known, came_s in list(self.seen.items()):
            if came_s < now_s - 2 * 3600:
                del self.seen[known]
        if event_id not in self.seen:
            self.handle_event(event)
            self.seen[event_id] = now_s
        self.send_response(204)
        self.end_headers()

    def handle_event(self, event):
        """Do what has to be done, in less than ten seconds."""
        self.log_message('%s %s', event['type'], event['data'])


if __name__ == '__main__':
    Handler.secret = os.environ['WEBHOOK_SECRET']
    http.server.ThreadingHTTPServer(
        ('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
