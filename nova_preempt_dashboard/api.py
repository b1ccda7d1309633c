# SPDX-License-Identifier: Apache-2.0
"""Calls the Preemption API and other services through the SDK.

Every method raises RequestFailed with a message for the user, or SignedOut.
"""

import functools
import itertools

from keystoneauth1 import exceptions as auth_exceptions
from openstack import exceptions
import requests

from nova_preempt_dashboard import paging
from nova_preempt_dashboard import periods

#: The most servers, flavors and images that one page reads.
MOST_ITEMS = 1000
#: The most flavors whose chances are asked for at once.
MOST_FLAVORS = 20


class RequestFailed(Exception):
    """A service has refused a request or has not answered it.

    :ivar status: of HTTP, None if there was no answer
    """

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class SignedOut(Exception):
    """The token of the user is no longer valid."""


def _translating(method):
    """Make a method raise RequestFailed or SignedOut."""
    @functools.wraps(method)
    def call(*args, **values):
        try:
            return method(*args, **values)
        except exceptions.HttpException as exc:
            if exc.status_code == 401:
                raise SignedOut(str(exc)) from exc
            raise RequestFailed(
                _message(exc), exc.status_code) from exc
        except (exceptions.SDKException, auth_exceptions.ClientException,
                requests.RequestException) as exc:
            raise RequestFailed(
                f'The service does not answer: {exc}') from exc
    return call


def _message(exc):
    """Return what the service said, without the URL of the request."""
    return str(exc.details or exc)


def _calling(name, **fixed):
    """Return a method of Api that calls the one of the proxy of this name.

    :param fixed: parameters that it has in each call
    """
    return _translating(lambda self, *args, **values: getattr(
        self.ours, name)(*args, **fixed, **values))


def _listing(service, name, **query):
    """Return a method of Api that lists at most MOST_ITEMS of a service.

    The method takes further query parameters.

    :param service: '' for the Preemption API
    """
    return _translating(lambda self, **more: list(itertools.islice(getattr(
        getattr(self.conn, service) if service else self.ours, name)(
            **query, **more), MOST_ITEMS)))


def _paging(name):
    """Return a method of Api that reads a paging.Page, newest first.

    It has the parameters size, trail and the query.
    """
    def read(self, size, trail='', **query):
        return paging.Page.of(list(getattr(self.ours, name)(
            marker=paging.marker(trail) or None, limit=size + 1,
            max_items=size + 1, **query)), size, trail)
    return _translating(read)


class Api:
    """The Preemption API, and the parts of other services beside it.

    :ivar conn: an openstack.connection.Connection
    :param add_to: nova_preempt.sdk.add_to, which asks the API for its version
    :param marks: [preemption]marks of nova.conf
    """

    def __init__(self, conn, add_to, marks=()):
        self.conn = conn
        self.marks = marks
        self._add_to = add_to

    @functools.cached_property
    def ours(self):
        """The proxy of the Preemption API."""
        return self._add_to(self.conn).preemption

    reservations = _paging('reservations')
    reservation = _calling('get_reservation')
    create_reservation = _calling('create_reservation')
    update_reservation = _calling('update_reservation')
    delete_reservation = _calling('delete_reservation', ignore_missing=False)
    preview_reservation = _calling('preview_reservation')
    reservation_limits = _calling('get_reservation_limits')
    hosts = _listing('', 'hosts', limit=MOST_ITEMS)
    host = _calling('get_host')
    update_host = _calling('update_host')

    preemptions = _paging('preemptions')
    preemption = _calling('get_preemption')
    preemption_statistics = _calling('get_preemption_statistics')

    requests = _paging('backlog_requests')
    request = _calling('get_backlog_request')
    create_request = _calling('create_backlog_request')
    cancel_request = _calling('cancel_backlog_request', ignore_missing=False)
    backlog_statistics = _calling('get_backlog_statistics')

    energy_report = _calling('get_energy_report')
    energy_hosts = _listing('', 'energy_hosts')
    retry_energy_host = _calling('retry_energy_host')
    pauses = _listing('', 'pauses')
    pause = _calling('pause')
    resume = _calling('resume', ignore_missing=False)

    # NOTE: with a limit the SDK asks for pages beyond the last one, and takes
    # a server that is being built for an endless loop.
    servers = _listing('compute', 'servers', details=True)
    flavors = _listing('compute', 'flavors', get_extra_specs=True)
    key_pairs = _listing('compute', 'keypairs')
    images = _listing('image', 'images', status='active')
    networks = _listing('network', 'networks')

    @_translating
    def reservations_between(self, since, until):
        """Return reservations that overlap a period, given in ISO 8601."""
        return list(self.ours.reservations(
            since=since, until=until, limit=MOST_ITEMS,
            max_items=MOST_ITEMS))

    @_translating
    def energy_host_page(self, size, trail=''):
        """Return a paging.Page of hosts; the service lists all at once."""
        after = paging.marker(trail)
        return paging.Page.of([host for host in self.ours.energy_hosts()
                               if host.name > after], size, trail)

    @_translating
    def energy(self, now):
        """Return an Energy; reading the samples of a day takes least.

        :param now: an aware datetime
        """
        found = self.ours.get_energy(since=periods.to_text(now - periods.DAY))
        return found if found.sampled_at else self.ours.get_energy()

    @_translating
    def placement_chances(self, flavors):
        """Return chances of at most MOST_FLAVORS flavors, given by id."""
        flavors = list(flavors)[:MOST_FLAVORS]
        return list(self.ours.placement_chances(flavors)) if flavors else []

    @_translating
    def eviction_rates(self, names):
        """Return {(flavor, zone, hours): EvictionRate} of flavors by name."""
        names = list(names)[:MOST_FLAVORS]
        return {(rate.flavor, rate.availability_zone, rate.hours): rate
                for rate in self.ours.eviction_rates(names)} if names else {}

    @_translating
    def create_server(self, **values):
        return self.conn.compute.create_server(**values)
