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
"""What the clients have in common."""

import json
from urllib import parse

from tempest.lib.common import rest_client

#: The newest that is tested; each has all of those before.
MICROVERSION = '1.2'


class BaseClient(rest_client.RestClient):

    def get_headers(self, *args, **kwargs):
        headers = super().get_headers(*args, **kwargs)
        headers['OpenStack-API-Version'] = f'preemption {MICROVERSION}'
        return headers

    def _call(self, method, path, code=200, body=None, **query):
        """The answer as a ResponseBody, empty where there is none."""
        url = f'v1/{path}'
        if query:
            url += '?' + parse.urlencode(query)
        arguments = [] if method in (self.get, self.delete) else [
            json.dumps(body) if body is not None else None]
        response, answer = method(url, *arguments)
        self.expected_success(code, response.status)
        return rest_client.ResponseBody(
            response, json.loads(answer) if answer else {})
