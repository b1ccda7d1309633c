# SPDX-License-Identifier: Apache-2.0
"""Base class of the clients."""

import json
from urllib import parse

from tempest.lib.common import rest_client

#: The newest microversion that is tested; it includes all earlier ones.
MICROVERSION = '1.2'


class BaseClient(rest_client.RestClient):

    def get_headers(self, *args, **kwargs):
        headers = super().get_headers(*args, **kwargs)
        headers['OpenStack-API-Version'] = f'preemption {MICROVERSION}'
        return headers

    def _call(self, method, path, code=200, body=None, **query):
        """Call the API and return a ResponseBody, empty without an answer."""
        url = f'v1/{path}'
        if query:
            url += '?' + parse.urlencode(query)
        arguments = [] if method in (self.get, self.delete) else [
            json.dumps(body) if body is not None else None]
        response, answer = method(url, *arguments)
        self.expected_success(code, response.status)
        return rest_client.ResponseBody(
            response, json.loads(answer) if answer else {})
