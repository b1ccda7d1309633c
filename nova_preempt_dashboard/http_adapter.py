# SPDX-License-Identifier: Apache-2.0
"""Sends the requests of one page."""

import urllib.parse

from keystoneauth1 import session
import requests


class Adapter(session.TCPKeepAliveAdapter):
    """Calls no service again that has not answered within the time limit.

    The limits of the calls of a page would add up.
    """

    def __init__(self):
        super().__init__()
        self._silent = set()      # (network location, first part of the path)

    def send(self, request, *args, **kwargs):
        """Send a prepared request of the requests library.

        :raises requests.Timeout: it has no answer, or an earlier one had none
        """
        parts = urllib.parse.urlsplit(request.url)
        service = parts.netloc, parts.path[1:].partition('/')[0]
        if service in self._silent:
            raise requests.Timeout(f'{request.url} has not answered before')
        try:
            return super().send(request, *args, **kwargs)
        except requests.Timeout:
            self._silent.add(service)
            raise
