# SPDX-License-Identifier: Apache-2.0
"""Host leases of Blazar, read through its API, version 1.

A reservation is identified by Blazar's id of the reservation, not of the
lease, as in the hint of Blazar's own filter. Blazar's other kinds of
reservations (of servers and flavors) use hosts that Blazar divides by itself,
and are ignored.
"""

import calendar
import time

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading

from nova_preempt.conf import reservation_blazar
from nova_preempt.core.reservation import leases as core

VERSION = '1.0'

HOSTS = 'physical:host'

# Formats of start_date and end_date first; created_at has the last.
_FORMATS = ('%Y-%m-%dT%H:%M:%S.%f', '%Y-%m-%dT%H:%M:%S', '%Y-%m-%d %H:%M:%S',
            '%Y-%m-%d %H:%M')

# Statuses of Blazar's reservations.
_STATUSES = {'pending': core.PENDING, 'active': core.ACTIVE,
             'deleted': core.ENDED}


class BlazarLeases:
    """A lease service; see nova_preempt.reservation.lease_service.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered; its
        [reservation_blazar] names a user with the role admin, as Blazar shows
        hosts and the leases of other projects to admins only
    """

    def __init__(self, conf):
        self._conf = conf
        self._adapter = None
        self._found = []
        self._ended = {}

    def fetch(self):
        # NOTE: hosts last, so that a removed host is not used.
        leases = self._get('/leases')['leases']
        hosts = self._hosts()
        found = [lease for item in leases for lease in _leases(item, hosts)]
        self._ended = {lease.id: lease for lease in found
                       if lease.status == core.ENDED}
        found = [lease for lease in found if lease.id not in self._ended]
        if found != self._found:
            self._found = found
        return self._found

    def get(self, lease_id):
        # NOTE: Blazar lists a lease until somebody deletes it.
        return self._ended.get(lease_id)

    def _hosts(self):
        """Return {reservation id: [node names]}."""
        allocations = self._get('/os-hosts/allocations')['allocations']
        names = {str(host['id']): host['hypervisor_hostname']
                 for host in self._get('/os-hosts')['hosts']}
        found = {}
        for allocation in allocations:
            # A host may be removed from Blazar between the two calls.
            name = names.get(str(allocation['resource_id']))
            for reservation in allocation['reservations'] if name else ():
                found.setdefault(reservation['id'], []).append(name)
        return found

    def _get(self, path):
        if self._adapter is None:
            self._adapter = self._connect()
        try:
            return self._adapter.get(path, microversion=VERSION).json()
        except ks_exc.CatalogException:
            # NOTE: the catalog is cached with the token: read it again, as
            # Blazar may be in it by then.
            self._adapter = None
            raise

    def _connect(self):
        name = reservation_blazar.GROUP
        auth = ks_loading.load_auth_from_conf_options(self._conf, name)
        session = ks_loading.load_session_from_conf_options(
            self._conf, name, auth=auth)
        group = self._conf[name]
        client = adapter.Adapter(
            session, service_type=group.service_type,
            service_name=group.service_name, interface=group.valid_interfaces,
            region_name=group.region_name,
            endpoint_override=group.endpoint_override)
        endpoint = (client.get_endpoint() or '').rstrip('/')
        if endpoint and not endpoint.endswith('/v1'):
            client.endpoint_override = endpoint + '/v1'
        return client


def _leases(item, hosts):
    """Yield the HostLeases of a lease of Blazar's.

    :param hosts: {reservation id: [node names]}
    """
    start_s, end_s = (_seconds(item[key]) for key in ('start_date',
                                                      'end_date'))
    for reservation in item['reservations']:
        status = _STATUSES.get(reservation['status'])
        if reservation['resource_type'] != HOSTS or status is None:
            continue
        yield core.HostLease(
            reservation['id'], item['project_id'], status, start_s, end_s,
            frozenset(hosts.get(reservation['id'], ())
                      if status != core.ENDED else ()))


def _seconds(date):
    """Return a date of Blazar's, in UTC, in seconds since the epoch."""
    for format_ in _FORMATS:
        try:
            return calendar.timegm(time.strptime(date, format_))
        except ValueError:
            continue
    raise ValueError(f'Blazar gives a date as {date!r}')
