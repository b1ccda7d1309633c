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
"""Calls to the Preemption API."""

import urllib.parse

from keystoneauth1 import adapter

SERVICE_TYPE = 'preemption'
VERSION = '1'
MICROVERSION = '1.0'


class Client:
    """The Preemption API.

    :param session: a keystoneauth1 Session
    :param endpoint: URL of the API, with or without its version; that of the
        catalog if empty
    :param options: for keystoneauth1's Adapter
    """

    def __init__(self, session, endpoint=None, **options):
        if endpoint:
            # Taken as it is, so it has to have the version.
            base = endpoint.rstrip('/').removesuffix(f'/v{VERSION}')
            options['endpoint_override'] = f'{base}/v{VERSION}'
        else:
            options['version'] = VERSION
        self._adapter = adapter.Adapter(
            session, service_type=SERVICE_TYPE,
            default_microversion=MICROVERSION, **options)

    def list_preemptions(self, limit=None, **filters):
        """Preemptions as dicts, newest first, in as many pages as needed."""
        query = _query(filters, limit=limit)
        left = limit
        while True:
            answer = self._get('/preemptions', query)
            found = answer['preemptions'][:left]
            yield from found
            if left is not None:
                left -= len(found)
            if not answer.get('preemptions_links') or left == 0:
                return
            query = _query(filters, limit=left, marker=found[-1]['id'])

    def show_preemption(self, preemption_id):
        """One preemption as a dict, with its record."""
        name = urllib.parse.quote(preemption_id, safe='')
        return self._get(f'/preemptions/{name}')['preemption']

    def explain(self, flavor, **values):
        """Who would end for a new server, as a dict."""
        body = _present({'flavor': flavor, **values})
        return self._post('/explain', {'explain': body})['explain']

    def simulate(self, server_id, reason=None):
        """End a preemptible server as a preemption would; returns an id."""
        body = _present({'server_id': server_id, 'reason': reason})
        return self._post('/simulate', {'simulate': body})['preemption']['id']

    def placement_chances(self, flavors, availability_zone=None):
        """How many servers would fit: dicts, one a flavor and zone."""
        return self._get('/placement-chances', _query(
            {'flavor': flavors, 'availability_zone': availability_zone})
        )['placement_chances']

    def statistics(self, **filters):
        """Numbers of preemptions by flavor, as a dict."""
        return self._get('/statistics', _query(filters))['statistics']

    def set_energy_figures(self, host, **figures):
        """Keep what was measured of a host; returns it as a dict."""
        name = urllib.parse.quote(host, safe='')
        return self._adapter.put(
            f'/energy/hosts/{name}/figures',
            json={'figures': _present(figures)}).json()['figures']

    def _get(self, path, query=None):
        return self._adapter.get(path, params=query or {}).json()

    def _post(self, path, body):
        return self._adapter.post(path, json=body).json()


def _present(values):
    return {name: value for name, value in values.items()
            if value is not None}


def _query(filters, **more):
    return {name: str(value).lower() if isinstance(value, bool) else value
            for name, value in _present({**filters, **more}).items()}
