# SPDX-License-Identifier: Apache-2.0
"""Resolves names to ids: projects, servers, zones and so on.

Who asks by a token alone has no catalog: then an id is taken as it is.
"""

import re
import uuid

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import identity
from openstack import exceptions as sdk_exc
from osc_lib import exceptions

#: What a call raises that was refused or not answered.
FAILURES = (sdk_exc.SDKException, ks_exc.ClientException)

# Without a catalog, or without the service in it.
_NO_SERVICE = (ks_exc.EndpointNotFound, ks_exc.CatalogException,
               ks_exc.DiscoveryFailure, sdk_exc.ServiceDiscoveryException)


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
    try:
        return _found(command, 'identity', 'project', name)
    except sdk_exc.ForbiddenException:
        # Keystone's ids, as far as they are not an operator's own.
        if re.fullmatch('[0-9a-f]{32}', name.replace('-', '').lower()):
            return name
        raise exceptions.CommandError(
            f'Keystone does not let you look for project {name!r}; take its '
            'id.') from None


def server_id(command, name):
    """The id of the server of this id or name.

    An id is not looked up: a server that was a victim may be gone.

    :raises CommandError: there is none, or more than one
    """
    if is_uuid(name):
        return name
    if not _has_catalog(command):
        raise exceptions.CommandError(
            f'{name!r} is no id of a server, and there is no Nova in the '
            'catalog to look for its name.')
    return _found(command, 'compute', 'server', name)


def flavor_id(command, name):
    """The id of the flavor of this id or name.

    :raises CommandError: there is none
    """
    return _found(command, 'compute', 'flavor', name)


def image_id(command, name):
    """The same of an image; there may be more than one of a name."""
    return name if is_uuid(name) else _found(command, 'image', 'image', name)


def network_id(command, name):
    """The same of a network."""
    return name if is_uuid(name) else _found(
        command, 'network', 'network', name)


def _has_catalog(command):
    return isinstance(command.app.client_manager.session.auth,
                      identity.BaseIdentityPlugin)


def _found(command, service, kind, name):
    """The id of what openstacksdk finds by its id or name.

    :raises ForbiddenException: it may not be looked for
    """
    if not _has_catalog(command):
        return name
    service = getattr(command.app.client_manager.sdk_connection, service)
    try:
        return getattr(service, f'find_{kind}')(name, ignore_missing=False).id
    except sdk_exc.DuplicateResource:
        return _the_one(kind, name, [None, None])
    except sdk_exc.NotFoundException:
        return _the_one(kind, name, [])
    except _NO_SERVICE:
        return name


def check_zone(command, name):
    """Refuse an availability zone that Nova does not have."""
    if name is None or not _has_catalog(command):
        return
    compute = command.app.client_manager.sdk_connection.compute
    try:
        zones = sorted(zone.name for zone in compute.availability_zones())
    except (*FAILURES, *_NO_SERVICE):
        return
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
        raise exceptions.CommandError(f'--host: there is no host {name!r}.')


def _the_one(kind, name, found):
    if len(found) > 1:
        raise exceptions.CommandError(
            f'There is more than one {kind} {name!r}; take its id.')
    if not found:
        raise exceptions.CommandError(f'There is no {kind} {name!r}.')
    return found[0]['id']
