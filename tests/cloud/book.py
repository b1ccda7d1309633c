# SPDX-License-Identifier: Apache-2.0
"""The requests of one user, compared with the servers that exist."""

import collections
import dataclasses
import itertools
import re
import threading
import time

from keystoneauth1 import exceptions as ks_exc
import outages

POLL_S = 0.5
PATIENCE_S = 300
REFUSED = 'No valid host'
# What a call that nobody answers ends with, a minute later.
UNANSWERED = ('Timed out', 'Timeout')
# Nova does not ask Placement twice when a move has ended, see
# doc/source/limits.rst: the server is where it is to be.
NOT_TAKEN_BACK = re.compile(
    r'Failed to delete allocations.*"status": 409', re.DOTALL)


@dataclasses.dataclass
class Wish:
    """:ivar uuid: None if the answer to the request is not known
    :ivar status: of the server, as it was seen last
    :ivar deleted: whether that was asked for; None if nobody knows
    :ivar well_at: when it was asked for, or seen last in another status
        than ERROR
    :ivar fault: the message of its first fault
    :ivar excused: whether a service was away meanwhile, or the fault is one
        that is to be expected
    :ivar unknown: whether Nova said, when it was deleted, that there is none
    """

    name: str
    flavor: str
    vcpus: int
    reservation: str | None = None
    uuid: str | None = None
    status: str = 'asked'
    deleted: bool | None = False
    well_at: float = dataclasses.field(default_factory=time.monotonic)
    fault: str | None = None
    excused: bool = True
    unknown: bool = False

    @property
    def preemptible(self):
        return self.flavor.startswith('spot.')


class Book:
    """The servers of one user.

    :param compute: a keystoneauth1 adapter
    :param preemption: a nova_preempt.sdk.v1._proxy.Proxy
    :param image: the uuid of one
    :param flavors: {name: (uuid, VCPUs)}
    :param absences: the faults.Absences that excuse what goes wrong
    """

    def __init__(self, project, compute, preemption, image, flavors,
                 absences):
        self.project = project
        self._compute = compute
        self._preemption = preemption
        self._image = image
        self._flavors = flavors
        self._absences = absences
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._wishes = {}

    def vcpus(self):
        """Return the number of VCPUs that are in use or requested."""
        self._look()
        with self._lock:
            return sum(wish.vcpus for wish in self._wishes.values()
                       if not wish.deleted
                       and wish.status in ('asked', 'BUILD', 'ACTIVE'))

    def boot(self, flavor, ended, reservation=None):
        """Ask for a server; its status once it has a lasting one."""
        uuid, vcpus = self._flavors[flavor]
        name = (f'{outages.PREFIX}{self.project}-{flavor}-'
                f'{next(self._numbers)}')
        with self._lock:
            wish = self._wishes[name] = Wish(name, flavor, vcpus, reservation)
        try:
            wish.uuid = self._compute.post('/servers', json={
                'server': {'name': name, 'flavorRef': uuid,
                           'imageRef': self._image, 'networks': 'none'},
                **({'os:scheduler_hints': {'reservation': reservation}}
                   if reservation else {}),
            }).json()['server']['id']
        except ks_exc.ClientException:
            wish.status = 'refused'
            return wish.status
        return self._wait(wish, ended)

    def _wait(self, wish, ended):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and not ended.wait(POLL_S):
            try:
                answer = self._compute.get(f'/servers/{wish.uuid}')
            except ks_exc.NotFound:
                wish.status = 'gone'
                return wish.status
            except ks_exc.ClientException:
                continue
            with self._lock:
                self._see(wish, answer.json()['server'])
            if wish.status in ('ACTIVE', 'ERROR'):
                return wish.status
        return f'{wish.status} at last'

    def _see(self, wish, server):
        wish.uuid = server['id']
        wish.status = server['status']
        if wish.status != 'ERROR':
            wish.well_at = time.monotonic()
        elif wish.fault is None:
            wish.fault = server.get('fault', {}).get('message', '')
            wish.excused = any(
                text in wish.fault for text in (REFUSED, *UNANSWERED)
            ) or NOT_TAKEN_BACK.search(wish.fault) is not None or (
                self._absences.since(wish.well_at))

    def delete_one(self, choice):
        """Delete a server that runs or has failed.

        :param choice: a random.Random
        """
        with self._lock:
            found = [wish for wish in self._wishes.values()
                     if wish.status == 'ERROR'] or [
                         wish for wish in self._wishes.values()
                         if wish.status == 'ACTIVE' and not wish.deleted]
        if found:
            self._delete(choice.choice(found))

    def has_failed(self):
        """Return whether a server is in ERROR."""
        with self._lock:
            return any(wish.status == 'ERROR'
                       for wish in self._wishes.values())

    def _delete(self, wish):
        # It may be, whatever the answer is.
        wish.deleted = True
        try:
            self._compute.delete(f'/servers/{wish.uuid}')
        except ks_exc.NotFound:
            wish.status = 'gone'
            wish.unknown = True
        except ks_exc.ClientException:
            with self._lock:
                wish.deleted = None

    def delete_again(self):
        """Delete servers again that still exist, as the request may be lost.

        Returns how many these are.
        """
        found = self._look()
        again = [wish for wish in self._wishes.values()
                 if wish.deleted and wish.name in found]
        for wish in again:
            self._delete(wish)
        return len(again)

    def give_up(self):
        """Delete servers that Nova will never build.

        The request for it is lost with the service that had it. Returns how
        many these are.
        """
        lost = [self._wishes[name] for name, server in self._look().items()
                if server['status'] == 'BUILD' and name in self._wishes
                and not self._wishes[name].deleted]
        for wish in lost:
            self._delete(wish)
        return len(lost)

    def half_recorded(self):
        """Return how many servers Nova lists but does not find.

        A conductor that ends between its record of the server in a cell and
        that of the cell leaves one: nobody can delete it by nova-api.
        """
        return sum(self._wishes[name].unknown
                   for name in self._list() if name in self._wishes)

    def _list(self):
        return {server['name']: server for server in self._compute.get(
            f'/servers/detail?name=^{outages.PREFIX}').json()['servers']}

    def _look(self):
        """Return {name: server}, without half recorded servers."""
        with self._lock:
            before = {name for name, wish in self._wishes.items()
                      if wish.uuid}
        found = self._list()
        with self._lock:
            for name, wish in self._wishes.items():
                if wish.unknown:
                    found.pop(name, None)
                if name in found:
                    self._see(wish, found[name])
                elif name in before:
                    wish.status = 'gone'
        return found

    def unsettled(self):
        """Texts on servers that something still happens to."""
        return [f'{name} is {server["status"]}, '
                f'{server["OS-EXT-STS:task_state"]}'
                for name, server in self._look().items()
                if server['status'] == 'BUILD'
                or server['OS-EXT-STS:task_state'] is not None]

    def unwanted(self):
        """Yield a text for each server in an unrequested state."""
        found = self._look()
        texts = [self._what_is_wrong(self._wishes.get(name), server)
                 for name, server in found.items()]
        texts += [f'{wish.name} is gone, and nobody has ended it'
                  for name, wish in self._wishes.items()
                  if name not in found and wish.status == 'gone'
                  and self._should_be(wish)]
        texts += [f'{wish.name} was in ERROR, and nothing away: {wish.fault}'
                  for wish in self._wishes.values() if not wish.excused]
        return sorted(filter(None, texts))

    @staticmethod
    def _what_is_wrong(wish, server):
        name, status = server['name'], server['status']
        text = f'{name} is {status}'
        if wish is None:
            return f'{text}, and nobody has asked for it'
        if server['OS-EXT-STS:task_state'] is not None:
            return f'{text}, {server["OS-EXT-STS:task_state"]}'
        if wish.deleted:
            return f'{text}, and was deleted'
        if status == 'SHELVED_OFFLOADED' and wish.reservation:
            return None
        # unwanted() has the errors.
        return None if status in ('ACTIVE', 'ERROR') else text

    def _should_be(self, wish):
        # None: nobody knows whether the request to delete it has arrived.
        if wish.deleted or wish.deleted is None or wish.reservation:
            return False
        return not (wish.preemptible and list(
            self._preemption.preemptions(victim_id=wish.uuid)))

    def errors(self):
        """{message: how many servers had it first}."""
        return collections.Counter(
            wish.fault.partition('. ')[0] for wish in self._wishes.values()
            if wish.fault is not None)
