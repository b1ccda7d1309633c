# SPDX-License-Identifier: Apache-2.0
"""All calls of the dashboard to the SDK.

Every method raises RequestFailed with a message for the user, or SignedOut.
"""

import functools
import itertools

from keystoneauth1 import exceptions as auth_exceptions
from openstack import exceptions
import requests

from nova_preempt_dashboard import paging

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
    details = exc.details
    return str(details) if details else str(exc)


class Api:
    """The Preemption API, and the parts of Nova and Glance beside it.

    :param conn: an openstack.connection.Connection with "preemption"
    """

    def __init__(self, conn):
        self._conn = conn
        self._ours = conn.preemption

    @_translating
    def reservations(self, size, trail='', **query):
        """Return a paging.Page of reservations, newest first."""
        return self._page(self._ours.reservations, size, trail, query)

    @_translating
    def reservations_between(self, since, until, **query):
        """Return reservations that overlap a period, newest first.

        :param since: ISO 8601, as until
        """
        return list(self._ours.reservations(
            since=since, until=until, limit=MOST_ITEMS,
            max_items=MOST_ITEMS, **query))

    @_translating
    def reservation(self, reservation_id):
        return self._ours.get_reservation(reservation_id)

    @_translating
    def create_reservation(self, **values):
        return self._ours.create_reservation(**values)

    @_translating
    def update_reservation(self, reservation_id, **values):
        return self._ours.update_reservation(reservation_id, **values)

    @_translating
    def delete_reservation(self, reservation_id):
        self._ours.delete_reservation(reservation_id, ignore_missing=False)

    @_translating
    def preview_reservation(self, **values):
        return self._ours.preview_reservation(**values)

    @_translating
    def reservation_limits(self):
        return self._ours.get_reservation_limits()

    @_translating
    def preemptions(self, size, trail='', **query):
        """Return a paging.Page of preemptions, newest first."""
        return self._page(self._ours.preemptions, size, trail, query)

    @_translating
    def preemption(self, preemption_id):
        return self._ours.get_preemption(preemption_id)

    @_translating
    def preemption_statistics(self, **query):
        return self._ours.get_preemption_statistics(**query)

    @_translating
    def placement_chances(self, flavors):
        """Return chances of at most MOST_FLAVORS flavors, given by id."""
        flavors = list(flavors)[:MOST_FLAVORS]
        return list(self._ours.placement_chances(flavors)) if flavors else []

    @_translating
    def requests(self, size, trail='', **query):
        """Return a paging.Page of requests of the backlog, newest first."""
        return self._page(self._ours.backlog_requests, size, trail, query)

    @_translating
    def request(self, request_id):
        return self._ours.get_backlog_request(request_id)

    @_translating
    def create_request(self, **values):
        return self._ours.create_backlog_request(**values)

    @_translating
    def cancel_request(self, request_id, servers=False):
        self._ours.cancel_backlog_request(
            request_id, servers=servers, ignore_missing=False)

    @_translating
    def backlog_plan(self):
        return self._ours.get_backlog_plan()

    @_translating
    def hosts(self):
        """Return all hosts, by name."""
        return list(self._ours.hosts(limit=MOST_ITEMS))

    @_translating
    def host(self, name):
        return self._ours.get_host(name)

    @_translating
    def set_reservable(self, name, reservable):
        return self._ours.update_host(name, reservable=reservable)

    @_translating
    def energy(self):
        return self._ours.get_energy()

    @_translating
    def energy_report(self, **query):
        return self._ours.get_energy_report(**query)

    @_translating
    def energy_hosts(self):
        return list(self._ours.energy_hosts())

    @_translating
    def retry_energy_host(self, name):
        self._ours.retry_energy_host(name)

    @_translating
    def pauses(self):
        return list(self._ours.pauses())

    @_translating
    def pause(self, what, reason):
        return self._ours.pause(what, reason)

    @_translating
    def resume(self, what):
        self._ours.resume(what, ignore_missing=False)

    @_translating
    def servers(self):
        """Return the newest servers of the project, as Nova shows them."""
        return self._first(self._conn.compute.servers(
            details=True, limit=MOST_ITEMS))

    @_translating
    def flavors(self):
        return self._first(self._conn.compute.flavors(
            details=True, get_extra_specs=True))

    @_translating
    def images(self):
        return self._first(self._conn.image.images(status='active'))

    @_translating
    def networks(self):
        return self._first(self._conn.network.networks())

    @_translating
    def key_pairs(self):
        return self._first(self._conn.compute.keypairs())

    @_translating
    def create_server(self, **values):
        return self._conn.compute.create_server(**values)

    @staticmethod
    def _first(found):
        return list(itertools.islice(found, MOST_ITEMS))

    @staticmethod
    def _page(listing, size, trail, query):
        return paging.Page.of(list(listing(
            marker=paging.marker(trail) or None, limit=size + 1,
            max_items=size + 1, **query)), size, trail)
