# SPDX-License-Identifier: Apache-2.0
"""Resolves names to ids: projects, servers, zones and so on.

A user with a token alone has no catalog: ids are then used as they are.
"""

import re
import uuid

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import identity
from openstack import exceptions as sdk_exc
from osc_lib import exceptions

#: Errors of calls that were refused or failed.
FAILURES = (sdk_exc.SDKException, ks_exc.ClientException)

#: The most servers, and projects, whose names one answer looks up.
MOST_NAMES = 20

# Errors without a catalog, or without the service in it.
_NO_SERVICE = (ks_exc.EndpointNotFound, ks_exc.CatalogException,
               ks_exc.DiscoveryFailure, sdk_exc.ServiceDiscoveryException)


def is_uuid(name):
    """Return whether a name is a UUID."""
    try:
        return str(uuid.UUID(name)) == name.lower()
    except ValueError:
        return False


def id_by(find, kind, name):
    """Return the id of an object from its id or name.

    :param find: a method of the client that finds it by name
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
    """Return the id of a project from its id or name.

    :raises CommandError: there is none, or more than one
    """
    return _in_keystone(command, 'project', name)


def _in_keystone(command, kind, name):
    try:
        return _found(command, 'identity', kind, name)
    except sdk_exc.ForbiddenException:
        # The usual format of Keystone's ids.
        if re.fullmatch('[0-9a-f]{32}', name.replace('-', '').lower()):
            return name
        raise exceptions.CommandError(
            f'You may not look up {kind} {name!r} in Keystone; use its id.'
        ) from None


def server_id(command, name):
    """Return the id of a server from its id or name.

    An id is not looked up, since a former victim may be deleted.

    :raises CommandError: there is none, or more than one
    """
    if is_uuid(name):
        return name
    if not _has_catalog(command):
        raise exceptions.CommandError(
            f'{name!r} must be the id of a server; its name cannot be looked '
            'up without a service catalog.')
    return _found(command, 'compute', 'server', name)


def flavor_id(command, name):
    """Return the id of a flavor from its id or name.

    :raises CommandError: there is none
    """
    return _found(command, 'compute', 'flavor', name)


def image_id(command, name):
    """Return the id of an image from its id or name."""
    return name if is_uuid(name) else _found(command, 'image', 'image', name)


def network_id(command, name):
    """Return the id of a network from its id or name."""
    return name if is_uuid(name) else _found(
        command, 'network', 'network', name)


def user_id(command, name):
    """Return the id of a user from its id or name.

    :raises CommandError: there is none, or more than one
    """
    return _in_keystone(command, 'user', name)


def names(command, ids):
    """Return {id: name} of servers and projects, as far as they are found.

    :param ids: {'server' or 'project': ids}
    """
    found = {}
    if not _has_catalog(command):
        return found
    connection = command.app.client_manager.sdk_connection
    for service, kind in (('compute', 'server'), ('identity', 'project')):
        for each in sorted(ids[kind])[:MOST_NAMES]:
            try:
                found[each] = getattr(getattr(connection, service),
                                      f'get_{kind}')(each).name
            except sdk_exc.NotFoundException:
                continue
            except (*FAILURES, *_NO_SERVICE):
                break
    return found


def _has_catalog(command):
    return isinstance(command.app.client_manager.session.auth,
                      identity.BaseIdentityPlugin)


def _found(command, service, kind, name):
    """Return the id of an object that openstacksdk finds by id or name.

    :raises ForbiddenException: the search is not allowed
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
            f'--availability-zone: there is no zone {name!r}; zones are '
            f'{", ".join(zones)}.')


def check_host(client, name):
    """Refuse an unknown host, if the user may list hosts."""
    try:
        hosts = [item.name for item in client.hosts()]
    except FAILURES:
        return
    if hosts and name not in hosts:
        raise exceptions.CommandError(f'--host: there is no host {name!r}.')


def _the_one(kind, name, found):
    if len(found) > 1:
        raise exceptions.CommandError(
            f'Several {kind}s have the name {name!r}; use an id.')
    if not found:
        raise exceptions.CommandError(f'There is no {kind} {name!r}.')
    return found[0]['id']
