# SPDX-License-Identifier: Apache-2.0
"""Servers, reservations and requests that pages show."""

import datetime
import time

POLL_S = 1
WAIT_S = 120
_OPEN_RESERVATIONS = ('pending', 'active', 'degraded')
_OPEN_REQUESTS = ('waiting', 'placing', 'active', 'partly_active', 'evicted')


def until(condition, what):
    """Wait until a function returns something true; return that."""
    last = time.monotonic() + WAIT_S
    while not (found := condition()):
        if time.monotonic() > last:
            raise AssertionError(f'not within {WAIT_S} s: {what}')
        time.sleep(POLL_S)
    return found


def hours(count):
    """Return the time in so many hours, as the API takes it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(
        hours=count)).strftime('%Y-%m-%dT%H:%M:%SZ')


class Scene:
    """Creates servers and reservations of a user, and removes them.

    :param conn: a connection of the SDK
    """

    def __init__(self, conn):
        self.conn = conn

    def clean(self):
        """Cancel and delete all, and resume all that is paused."""
        ours, compute = self.conn.preemption, self.conn.compute
        for item in ours.backlog_requests():
            if item.status in _OPEN_REQUESTS:
                ours.cancel_backlog_request(item)
        for item in ours.reservations():
            if item.status in _OPEN_RESERVATIONS:
                ours.delete_reservation(item)
        for server in compute.servers():
            compute.delete_server(server)
        until(lambda: not list(compute.servers()), 'all servers deleted')
        until(lambda: not [
            item for item in ours.reservations()
            if item.status in _OPEN_RESERVATIONS], 'reservations cancelled')

    def _server(self, flavor):
        return {
            'image_id': next(self.conn.image.images()).id,
            'flavor_id': self.conn.compute.find_flavor(flavor).id}

    def boot(self, name, flavor, count=1, wait=True, **values):
        compute = self.conn.compute
        compute.create_server(
            name=name, min_count=count, max_count=count, networks='none',
            **self._server(flavor), **values)
        if wait:
            until(lambda: len([
                server for server in compute.servers()
                if server.name.startswith(name)
                and server.status == 'ACTIVE']) == count,
                f'{count} servers {name} are active')

    def boot_again(self, name, flavor, done):
        """Boot a server until done() is true, again where it has failed.

        Preemption refuses a server where others have claimed its hosts first.
        """
        compute = self.conn.compute

        def try_it():
            servers = [server for server in compute.servers()
                       if server.name == name]
            for server in servers:
                if server.status == 'ERROR':
                    compute.delete_server(server)
                    return False
            if not servers:
                self.boot(name, flavor, wait=False)
            return done()

        until(try_it, f'{name} is placed')

    def is_active(self, name):
        return any(server.name == name and server.status == 'ACTIVE'
                   for server in self.conn.compute.servers())

    def reserve(self, name, start_h=None, hours_long=1, **values):
        if start_h is not None:
            values.update(start_time=hours(start_h),
                          end_time=hours(start_h + hours_long))
        else:
            values['duration'] = round(hours_long * 3600)
        return self.conn.preemption.create_reservation(name=name, **values)

    def request(self, name, flavor, count=1, **values):
        server = self._server(flavor)
        return self.conn.preemption.create_backlog_request(
            name=name, count=count, flavors=[server['flavor_id']], body={
                'server': {'name': name, 'imageRef': server['image_id'],
                           'networks': 'none'}}, **values)
