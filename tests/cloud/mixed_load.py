# SPDX-License-Identifier: Apache-2.0
"""Load and faults at the same time, and checks at the end.

    PYTHONPATH=.:tools MINICLOUD_DIR=DIRECTORY \\
        python -m tests.cloud.mixed_load [--minutes 60] [--seed 0]

Two users boot and delete normal and preemptible servers in a cloud that is
full, one of them reserves hosts and uses them, and once a minute a service is
killed, stopped or frozen for a while. Placement is read all the time, and
``nova-preempt-manage verify`` called for what holds at every moment. At the
end all has to settle: it finds nothing, no server is in a state that nobody
asked for, and once all are deleted nothing is left in Placement. As users do,
these delete what is in ERROR (which has to be from a time when a service was
away), delete again what does not go away, and give up what Nova does not build
because the request for it was lost with a service. What a migration holds that
was given up with its server is freed as Nova has it, by ``nova-manage
placement audit``. Prints all that, and how the memory of our processes grew
that nobody has killed; exits with 1 if something is wrong.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import itertools
import random
import statistics
import subprocess
import sys
import threading
import time

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions
import outages

from tests.cloud import base
from tests.cloud import book as books
from tests.cloud import faults
from tests.cloud import invariant_watch
from tests.cloud import memory
from tests.cloud import sampler

SETTLE_S = 600
# Whom Nova has not answered by then waits for ever.
GIVE_UP_S = 150
PAUSE_S = 1
# Of the VCPUs, what normal servers and what all of them take.
NORMAL_SHARE = 0.45
WORKERS = 2
RESERVATION_S = 60
LEAD_S = 60
RESERVABLE = 2
OPTIONS = {
    'preemption': {'termination_timeout_s': 20},
    'preemption_engine': {'interval_s': 2},
    'reservation': {'enabled': 'true', 'evacuation_lead_s': LEAD_S,
                    'guard_s': LEAD_S},
}
CONSTANTS = {'reservation.host_inventory.INTERVAL_S': 5}
OVER = ('ended', 'error', 'cancelled')
# What a service that is away is answered with.
AWAY = (ks_exc.ClientException, exceptions.SDKException)


class Run:
    """State that all threads share.

    :ivar ended: set when they are to come to an end
    :ivar counts: how often what has happened
    :ivar faults: what must not be, as text
    :ivar absences: when services were away
    """

    def __init__(self, place, seed):
        self.place = place
        self.seed = seed
        self.ended = threading.Event()
        self.counts = collections.Counter()
        self.faults = []
        self.absences = faults.Absences()

    def random(self, name):
        """Return the random.Random of a thread."""
        return random.Random(f'{self.seed} {name}')

    def loop(self, work, pause_s=PAUSE_S):
        """Work until the end, also while services are down."""
        while not self.ended.wait(pause_s):
            try:
                work()
            except (*AWAY, SystemExit) as exc:
                self.counts[f'gave up: {type(exc).__name__}'] += 1


class User:
    """Boots servers of some flavors, and deletes them again.

    :param share: of the VCPUs of the cloud, which it keeps in use
    """

    def __init__(self, run, book, flavors, share):
        self._run = run
        self._book = book
        self._flavors = flavors
        self._share = share
        self._random = run.random(f'{book.project} {threading.get_ident()}')
        self.took_s = []

    def work(self):
        run, book = self._run, self._book
        vcpus = book.vcpus()
        total = 10 * run.place.layout.settings.computes
        if book.has_failed() or vcpus > self._share * total or (
                vcpus and self._random.random() < 0.2):
            book.delete_one(self._random)
            run.counts['deletes'] += 1
            return
        flavor = self._random.choice(self._flavors)
        start = time.monotonic()
        status = book.boot(flavor, self._run.ended)
        run.counts[f'{flavor.split(".")[0]} {status}'] += 1
        if status == 'ACTIVE':
            self.took_s.append(time.monotonic() - start)


class Tenant:
    """Reserves a host, uses it, and lets the reservation end."""

    def __init__(self, run, book, api):
        self._run = run
        self._book = book
        self._api = api
        self._random = run.random('reservations')

    def work(self):
        start = datetime.datetime.now(datetime.timezone.utc) + (
            datetime.timedelta(seconds=LEAD_S + 10))
        try:
            made = self._api.create_reservation(
                quantity=1, duration=RESERVATION_S,
                start_time=f'{start:%Y-%m-%dT%H:%M:%SZ}',
                end_action=self._random.choice(('delete', 'shelve')))
        except exceptions.HttpException as exc:
            self._run.counts[f'reservations refused: {exc.status_code}'] += 1
            self._run.ended.wait(10)
            return
        status = self._wait(made, ('active', *OVER))
        self._run.counts[f'reservations {status}'] += 1
        if status == 'active':
            served = self._book.boot('normal.half', self._run.ended,
                                     reservation=made.id)
            self._run.counts[f'reserved {served}'] += 1
        self._wait(made, OVER)

    def _wait(self, reservation, statuses):
        status = 'unknown'
        until = time.monotonic() + base.PATIENCE_S
        while time.monotonic() < until and not self._run.ended.wait(PAUSE_S):
            with contextlib.suppress(*AWAY):
                status = self._api.get_reservation(reservation.id).status
                if status in statuses:
                    return status
        return f'{status} at last'


class Load:
    """The whole run.

    :param place: a base.Place
    """

    def __init__(self, place, args):
        self._place = place
        self._args = args
        self._run = Run(place, args.seed)
        connections = {
            'admin': base.connect(base.ADMIN),
            'member': base.connect(base.MEMBER)}
        self._admin = connections['admin']
        base.make_flavors(self._admin.compute)
        self._image = self._admin.image.find_image('tiny').id
        self._apis = {name: connection.preemption
                      for name, connection in connections.items()}
        flavors = {
            name: (self._admin.compute.find_flavor(name).id,
                   base.VCPUS[name.split('.')[1]]) for name in base.FLAVORS}
        self._computes = {
            name: _adapter(connection, 'compute',
                           microversion=outages.COMPUTE_MICROVERSION)
            for name, connection in connections.items()}
        self._books = {name: books.Book(
            name, compute, self._apis[name], self._image, flavors,
            self._run.absences)
            for name, compute in self._computes.items()}
        self._users = []

    def play(self):
        """Run the load; return a text for each fault."""
        place = self._place
        place.configure(OPTIONS, CONSTANTS)
        self._make_reservable()
        sampler_ = sampler.Sampler(_adapter(self._admin, 'placement'))
        watched = memory.Memory(place.services, [
            name for name in place.services.names()
            if name.startswith('nova-preempt-')])
        invariants = invariant_watch.InvariantWatch(place.verify_command())
        sampler_.start()
        invariants.start()
        watched.start()
        self._play()
        invariants.stop()
        self._run.counts['looks of verify under load'] = invariants.looks
        self._run.counts['looks of verify in vain'] = invariants.away
        wrong = self._settle() + self._run.faults + invariants.faults
        sampler_.stop()
        wrong += sampler_.faults + self._clean()
        watched.stop()
        self._print(watched, sampler_)
        return wrong

    def _make_reservable(self):
        until = time.monotonic() + base.PATIENCE_S
        for host in self._place.layout.computes[:RESERVABLE]:
            while True:
                try:
                    self._place.openstack('reservation', 'host', 'set',
                                          '--reservable', host)
                    break
                except AssertionError:
                    # The engine has just been started.
                    if time.monotonic() > until:
                        raise

    def _play(self):
        run = self._run
        away = faults.Faults(run)
        tenant = Tenant(run, self._books['member'], self._apis['member'])
        self._users = [
            *(User(run, self._books['admin'],
                   ('normal.half', 'normal.tenth'), NORMAL_SHARE)
              for _ in range(WORKERS)),
            User(run, self._books['member'],
                 ('spot.half', 'spot.half.notice', 'spot.tenth'), 1)]
        works = [(user.work, PAUSE_S) for user in self._users]
        works.append((tenant.work, PAUSE_S))
        if not self._args.no_faults:
            works.append((away.work, faults.PAUSE_S))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            futures = [pool.submit(run.loop, *work) for work in works]
            until = time.monotonic() + self._args.minutes * 60
            while time.monotonic() < until and not any(
                    future.done() for future in futures):
                time.sleep(1)
            run.ended.set()
        for future in futures:
            future.result()

    def _settle(self):
        """Return a text for each server that does not settle."""
        _say('No more load.')
        self._run.faults += [f'{name} has ended at last'
                             for name in self._place.ended()]
        for name in self._place.services.names():
            self._place.services.start(name)
        self._cancel()
        start = time.monotonic()
        restarted = False
        while True:
            took_s = time.monotonic() - start
            again = self._of_all(books.Book.delete_again)
            lost = []
            if took_s > GIVE_UP_S and not restarted:
                lost = self._of_all(books.Book.give_up)
                self._run.counts['computes started anew at the end'] += 1
                self._place.restart_computes()
                self._run.counts['allocations freed by an audit'] += (
                    self._place.free_allocations())
                restarted = True
            left = self._of_all(books.Book.unsettled)
            problems = self._verify()
            self._run.counts['deleted again at the end'] += sum(again)
            self._run.counts['never built'] += sum(lost)
            if not (any(again) or any(lost) or any(left) or problems):
                _say(f'Settled after {took_s:.0f} s.')
                break
            if took_s > SETTLE_S:
                break
        self._run.counts['listed by Nova, which knows none such'] += sum(
            self._of_all(books.Book.half_recorded))
        return problems + list(itertools.chain.from_iterable(
            self._of_all(books.Book.unwanted)))

    def _of_all(self, what):
        return [_insist(lambda book=book: what(book))
                for book in self._books.values()]

    def _cancel(self):
        api = self._apis['member']
        for item in _insist(lambda: list(api.reservations())):
            if item.status not in OVER:
                _insist(lambda item=item: api.delete_reservation(item))

    def _verify(self):
        done = subprocess.run(
            self._place.verify_command(), shell=True, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return [f'verify: {line}' for line in done.stdout.splitlines()[-5:]
                ] if done.returncode else []

    def _clean(self):
        """Delete all servers; return a text for each leftover."""
        for compute in self._computes.values():
            cloud = outages.Cloud(compute, self._image)
            cloud.delete(list(cloud.servers()))
        placement = _adapter(self._admin, 'placement')
        wrong = self._verify()
        for provider in placement.get('/resource_providers').json()[
                'resource_providers']:
            usages = placement.get(
                f'/resource_providers/{provider["uuid"]}/usages').json()[
                    'usages']
            wrong += [f'{used} {name} of {provider["name"]} are in use, by '
                      'no server' for name, used in usages.items() if used]
        self._place.configure({})
        return wrong

    def _print(self, watched, sampler_):
        for what, number in sorted(self._run.counts.items()):
            _say(f'{number:7} {what}')
        for book in self._books.values():
            for text, number in sorted(book.errors().items()):
                _say(f'{number:7} servers of {book.project}: {text}')
        _say(f'{sampler_.samples:7} looks at a provider')
        took_s = sorted(took for user in self._users[:WORKERS]
                        for took in user.took_s)
        if took_s:
            _say(f'normal servers: median {statistics.median(took_s):.1f} '
                 f's, 95 % within {took_s[int(len(took_s) * .95)]:.1f} s, '
                 f'at most {took_s[-1]:.1f} s')
        for line in watched.report():
            _say(line)


def _adapter(connection, service_type, microversion=None):
    return adapter.Adapter(
        connection.session, service_type=service_type, interface='public',
        default_microversion=microversion)


def _insist(call):
    """Return the result of a call, repeated while services are down."""
    until = time.monotonic() + base.PATIENCE_S
    while True:
        try:
            return call()
        except AWAY:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE_S)


def _say(text):
    sys.stdout.write(f'{text}\n')
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--minutes', type=float, default=60, metavar='N')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--no-faults', action='store_true',
                        help='load alone')
    load = Load(base.Place.find(), parser.parse_args())
    wrong = load.play()
    _say('\n'.join(f'WRONG: {text}' for text in wrong)
         or 'All is as it was asked for.')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
