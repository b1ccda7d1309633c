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
#: That of reservations, hosts, properties and limits.
RESERVATIONS = '1.1'
ENERGY = '1.1'
PAUSES = '1.2'


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
            session, service_type=SERVICE_TYPE, **options)

    def list_preemptions(self, limit=None, **filters):
        """Preemptions as dicts, newest first, in as many pages as needed."""
        return self._pages('preemptions', limit, filters)

    def show_preemption(self, preemption_id):
        """One preemption as a dict, with its record."""
        return self._get(
            _path('preemptions', preemption_id))['preemption']

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

    def list_reservations(self, limit=None, **filters):
        """Reservations as dicts, newest first, in as many pages as needed."""
        return self._pages('reservations', limit, filters, RESERVATIONS)

    def create_reservation(self, **values):
        """Reserve hosts; the reservation as a dict."""
        return self._post('/reservations', {'reservation': _present(values)},
                          RESERVATIONS)['reservation']

    def preview_reservation(self, **values):
        """When and where that could be, as a dict; nothing is reserved."""
        return self._post(
            '/reservations/preview', {'reservation': _present(values)},
            RESERVATIONS)['preview']

    def show_reservation(self, reservation_id):
        return self._get(_path('reservations', reservation_id),
                         version=RESERVATIONS)['reservation']

    def change_reservation(self, reservation_id, **values):
        """The changed reservation as a dict."""
        return self._patch(_path('reservations', reservation_id),
                           {'reservation': _present(values)})['reservation']

    def cancel_reservation(self, reservation_id):
        self._delete(_path('reservations', reservation_id))

    def list_hosts(self, limit=None, **filters):
        """Hosts with their reservations as dicts, by name."""
        return self._pages('hosts', limit, filters, RESERVATIONS, 'name')

    def show_host(self, name):
        return self._get(_path('hosts', name), version=RESERVATIONS)['host']

    def change_host(self, name, **values):
        """The changed host as a dict."""
        return self._patch(_path('hosts', name), {'host': values})['host']

    def list_properties(self):
        """What can be asked for of hosts, as dicts."""
        return self._get('/properties', version=RESERVATIONS)['properties']

    def change_property(self, name, hidden):
        """The changed property as a dict."""
        return self._patch(_path('properties', name),
                           {'property': {'hidden': hidden}})['property']

    def show_reservation_limits(self, project_id=None):
        """Limits as a dict.

        :param project_id: that of the token if None
        :raises ValueError: the session does not know it
        """
        project_id = project_id or self._adapter.get_project_id()
        if project_id is None:
            raise ValueError('no project')
        return self._get(_path('reservation-limits', project_id),
                         version=RESERVATIONS)['reservation_limits']

    def set_reservation_limits(self, project_id, **limits):
        """Give a project these limits of its own, and no others."""
        return self._adapter.put(
            _path('reservation-limits', project_id),
            json={'reservation_limits': limits},
            microversion=RESERVATIONS).json()['reservation_limits']

    def unset_reservation_limits(self, project_id):
        """Let the limits of all projects hold for this one."""
        self._delete(_path('reservation-limits', project_id))

    def show_energy(self, **filters):
        """What is drawn and was saved, as a dict."""
        return self._get('/energy', _query(filters), ENERGY)['energy']

    def list_energy_hosts(self):
        """Hosts with their power states and figures as dicts, by name."""
        return self._get('/energy/hosts', version=ENERGY)['hosts']

    def energy_report(self, **filters):
        """What was drawn and saved over time, as a dict."""
        return self._get('/energy/report', _query(filters), ENERGY)['report']

    def set_energy_figures(self, host, **figures):
        """Keep what was measured of a host; returns it as a dict."""
        return self._adapter.put(
            f'{_path("energy/hosts", host)}/figures',
            json={'figures': _present(figures)},
            microversion=ENERGY).json()['figures']

    def delete_energy_figures(self, host):
        """Forget what was measured of a host."""
        self._adapter.delete(f'{_path("energy/hosts", host)}/figures',
                             microversion=ENERGY)

    def retry_energy_host(self, host):
        """Have a host booted again that has failed."""
        self._adapter.post(f'{_path("energy/hosts", host)}/retry',
                           microversion=ENERGY)

    def list_pauses(self):
        """What is stopped for now, as dicts."""
        return self._get('/pauses', version=PAUSES)['pauses']

    def pause(self, what, reason):
        """Stop preemption, reservations or power; the pause as a dict."""
        return self._adapter.put(
            _path('pauses', what), json={'pause': {'reason': reason}},
            microversion=PAUSES).json()['pause']

    def resume(self, what):
        """Go on with what was stopped."""
        self._adapter.delete(_path('pauses', what), microversion=PAUSES)

    def _pages(self, name, limit, filters, version=MICROVERSION, key='id'):
        query = _query(filters, limit=limit)
        left = limit
        while True:
            answer = self._get(f'/{name}', query, version)
            found = answer[name][:left]
            yield from found
            if left is not None:
                left -= len(found)
            if not answer.get(f'{name}_links') or left == 0:
                return
            query = _query(filters, limit=left, marker=found[-1][key])

    def _get(self, path, query=None, version=MICROVERSION):
        return self._adapter.get(path, params=query or {},
                                 microversion=version).json()

    def _post(self, path, body, version=MICROVERSION):
        return self._adapter.post(path, json=body,
                                  microversion=version).json()

    def _patch(self, path, body):
        return self._adapter.patch(path, json=body,
                                   microversion=RESERVATIONS).json()

    def _delete(self, path):
        self._adapter.delete(path, microversion=RESERVATIONS)


def _path(collection, name):
    return f'/{collection}/{urllib.parse.quote(name, safe="")}'


def _present(values):
    return {name: value for name, value in values.items()
            if value is not None}


def _query(filters, **more):
    return {name: str(value).lower() if isinstance(value, bool) else value
            for name, value in _present({**filters, **more}).items()}
