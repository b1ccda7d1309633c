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
"""What names mean: projects in Keystone, servers and zones in Nova, and so on.

Who asks by a token alone has no catalog: then an id is taken as it is.
"""

import re
import urllib.parse
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from osc_lib import exceptions

from nova_preempt import segments

#: What a call raises that was refused or not answered.
FAILURES = (sdk_exc.SDKException, ks_exc.ClientException)

# Without a catalog, or without the service in it.
_NO_SERVICE = (ks_exc.EndpointNotFound, ks_exc.CatalogException,
               ks_exc.DiscoveryFailure, ks_exc.MissingAuthPlugin)


def is_uuid(name):
    """Whether it is an id as Nova and this service make them."""
    try:
        return str(uuid.UUID(name)) == name.lower()
    except ValueError:
        return False


def id_by(find, kind, name):
    """The id of what is named by its id or its name.

    :param find: a method of the client that finds it by its name
    :raises CommandError: there is none, or more than one
    """
    if is_uuid(name):
        return name
    try:
        found = find(name)
    except sdk_exc.DuplicateResource:
        return _the_one(kind, name, [None, None])
    return _the_one(kind, name, [] if found is None else [found])


def project_id(command, name):
    """The id of the project of this id or name.

    :raises CommandError: there is none, or more than one
    """
    service = _service(command, 'identity', version='3')
    try:
        found = _get(service, f'/projects/{_segment(name)}')
        if found.status_code == 200:
            return found.json()['project']['id']
        if found.status_code == 403:
            return _without_looking(name)
        found = _get(service, f'/projects?name={_quoted(name)}')
    except _NO_SERVICE:
        return name
    if found.status_code == 403:
        return _without_looking(name)
    if found.status_code == 404:
        return name     # that is no Keystone: there is no catalog
    found.raise_for_status()
    return _the_one('project', name, found.json().get('projects', ()))


def _without_looking(name):
    # Keystone's ids, as far as they are not an operator's own.
    if not re.fullmatch('[0-9a-f]{32}', name.replace('-', '').lower()):
        raise exceptions.CommandError(
            f'Keystone does not let you look for project {name!r}; take its '
            'id.')
    return name


def server_id(command, name):
    """The id of the server of this id or name.

    An id is not looked up: a server that was a victim may be gone.

    :raises CommandError: there is none, or more than one
    """
    if is_uuid(name):
        return name
    service = _service(command, 'compute')
    try:
        found = _get(service, '/servers?name='
                     + _quoted(f'^{re.escape(name)}$'))
        servers = (found.json().get('servers', ())
                   if found.status_code == 200 else ())
    except _NO_SERVICE:
        raise exceptions.CommandError(
            f'{name!r} is no id of a server, and there is no Nova in the '
            'catalog to look for its name.') from None
    return _the_one('server', name, [
        item for item in servers if item['name'] == name])


def flavor_id(command, name):
    """The id of the flavor of this id or name.

    :raises CommandError: there is none
    """
    return _id_of(command, 'flavor', name, 'compute', '/flavors')


def image_id(command, name):
    """The same of an image; there may be more than one of a name."""
    return name if is_uuid(name) else _id_of(
        command, 'image', name, 'image', '/images', version='2')


def network_id(command, name):
    """The same of a network."""
    return name if is_uuid(name) else _id_of(
        command, 'network', name, 'network', '/networks', version='2')


def _id_of(command, kind, name, service, path, **options):
    """By its id, or else among those of its name."""
    service = _service(command, service, **options)
    try:
        found = _get(service, f'{path}/{_segment(name)}')
        if found.status_code == 200:
            found = found.json()
            # Glance has no name for what it shows.
            return found.get(kind, found)['id']
        found = _get(service, f'{path}?name={_quoted(name)}')
    except _NO_SERVICE:
        return name
    if found.status_code == 404:
        return name     # nothing of that: there is no catalog
    found.raise_for_status()
    # Nova lists all flavors, whatever it is asked for.
    return _the_one(kind, name, [
        item for item in found.json()[f'{kind}s'] if item['name'] == name])


def check_zone(command, name):
    """Refuse an availability zone that Nova does not have."""
    if name is None:
        return
    try:
        found = _get(_service(command, 'compute'), '/os-availability-zone')
    except _NO_SERVICE:
        return
    if found.status_code != 200:
        return
    zones = sorted(item['zoneName']
                   for item in found.json()['availabilityZoneInfo'])
    if name not in zones:
        raise exceptions.CommandError(
            f'--availability-zone: there is no zone {name!r}; there are: '
            f'{", ".join(zones)}.')


def check_host(client, name):
    """Refuse a host that there is not, as far as that can be told."""
    try:
        hosts = [item.name for item in client.hosts()]
    except FAILURES:
        return
    if hosts and name not in hosts:
        raise exceptions.CommandError(
            f'--host: there is no host {name!r}.')


def _the_one(kind, name, found):
    if len(found) > 1:
        raise exceptions.CommandError(
            f'There is more than one {kind} {name!r}; take its id.')
    if not found:
        raise exceptions.CommandError(f'There is no {kind} {name!r}.')
    return found[0]['id']


def _service(command, kind, **options):
    manager = command.app.client_manager
    return adapter.Adapter(
        manager.session, service_type=kind, interface=manager.interface,
        region_name=manager.region_name, **options)


def _get(service, path):
    return service.get(path, raise_exc=False)


def _segment(name):
    try:
        return segments.segment(name)
    except segments.NotASegment as exc:
        raise exceptions.CommandError(str(exc)) from None


def _quoted(name):
    return urllib.parse.quote(name, safe='')
