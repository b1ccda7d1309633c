# SPDX-License-Identifier: Apache-2.0
"""The policies that bench/duel.py compares, as policies of the simulator.

Each class states its rule and the source of the rule. All of them run on the
same simulator: Nova's weigher chooses among the hosts with space, a server
that has to end gets the same notice and takes the same time to be deleted.
"""

import collections
import dataclasses
import random
import time

from nova_preempt.core import capacity
from nova_preempt.core.model import SECOND, Candidate, Host, VictimSet
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulation
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import State

#: How often a policy looks whether its victims are gone.
LOOK_US = SECOND // 10


class Contest(simulation.Simulation):
    """A simulation that counts what the duel compares: nova-preempt's policy.

    :param score: grows
    """

    def __init__(self, setting, options, seed, score):
        self.score = score
        super().__init__(setting, options, seed, score.record)

    def timed(self, choose, *arguments):
        """Return what a choice returns, and count its processor time."""
        start = time.process_time()
        try:
            return choose(*arguments)
        finally:
            self.score.choice_s += time.process_time() - start

    def _find(self, server, attempt):
        self.score.counts['decisions'] += 1
        return self.timed(self.choose, server, attempt)

    def choose(self, server, attempt):
        """Return (uuid of a host, plan of its victims), None for no host."""
        return super()._find(server, attempt)

    def _start(self, server):
        if server.kind.terms is None:
            self.score.delays_us.append(
                self._world.events.now_us - server.boot.at_us)
        super()._start(server)


class FirstFit(Contest):
    """The first host in order of name that has space; nobody is evicted."""

    def choose(self, server, attempt):
        for host in self._world.cloud.hosts.values():
            if host.has_room(server.kind.request):
                return host.uuid, None
        return None


class Rival(Contest):
    """Base of policies that choose victims where Nova finds no valid host.

    They run with preemption switched off, so that only Nova's part of the
    choice is the simulator's.
    """

    def spots(self, host):
        """Return the preemptible servers of a host that may be ended.

        Those that are active, and not ending already, in order of uuid.
        """
        servers = self._world.servers
        return [each for uuid, each in sorted(host.servers.items())
                if uuid in servers
                and servers[uuid].state is State.RUNNING
                and uuid not in self._evictions.ending]

    def amounts(self, spot):
        """Return {class: amount} of a server."""
        return self._world.servers[spot.uuid].kind.resources

    def free(self, host):
        """Return {class: free amount} of a host."""
        provider, = host.providers
        return {name: provider.free(name) for name in host.inventories}

    def short(self, host, wanted, spots=()):
        """Return whether a host is too small without these servers."""
        free = capacity.total((self.free(host), *map(self.amounts, spots)))
        return not capacity.fits(wanted, free)

    def hosts(self, wanted):
        """Yield (host, its preemptible servers) that may serve a request."""
        for host in self._world.cloud.hosts.values():
            spots = self.spots(host)
            if not self.short(host, wanted, spots):
                yield host, spots

    def end(self, spots):
        """Delete servers; return [(MemoryHost, uuid)] of them."""
        found = []
        for spot in spots:
            server = self._world.servers[spot.uuid]
            found.append((server.current_host, spot.uuid))
            self._evictions.end(server, simulated_evictions.MAXIMUM_RUNTIME)
        return found

    def boot_later(self, server, victims, timeout_s):
        """Boot a server again when its victims are gone, or in this time."""
        until_us = self._world.events.now_us + timeout_s * SECOND
        self._look(server, victims, until_us)

    def _look(self, server, victims, until_us):
        victims = [(host, uuid) for host, uuid in victims
                   if uuid in host.allocations]
        if victims and self._world.events.now_us < until_us:
            self._world.later(server, LOOK_US, Phase.POLL, self._look, victims,
                              until_us)
        else:
            self._decide_again(server)

    def every(self, interval_s, run):
        """Run a function every so often."""
        self._world.events.add(
            self._world.events.now_us + interval_s * SECOND, Phase.POLL,
            self._tick, interval_s, run)

    def _tick(self, interval_s, run):
        run()
        self.every(interval_s, run)

    def keep_free(self, share, spots):
        """Delete servers, in this order, until a share of vCPUs and memory is
        free in the whole cloud; servers that end already count as gone."""
        cloud = self._world.cloud
        total = cloud.total()
        ending = [each.kind.resources
                  for each in self._evictions.ending.values()]
        free = capacity.total((cloud.free(), *ending))
        victims = []
        for spot in spots():
            if all(free[name] >= share * total[name]
                   for name in ('VCPU', 'MEMORY_MB') if name in total):
                break
            victims.append(spot)
            free = capacity.total((free, self.amounts(spot)))
        return victims


class Aardvark(Rival):
    """aardvark: kill, then retry.

    A boot without valid host leaves a PENDING server, and a notification
    starts the reaper, which chooses servers of one host, deletes them, waits
    for at most 20 s until their allocations are gone, and has Nova rebuild the
    server. That schedules it anew on any host: nothing is reserved, so another
    request may take the space. If it fails, the reaper starts again, up to
    ``max_handling_retries`` (5) times.

    ``chance``: a random host that has enough with all its preemptible servers
    gone; its servers are added in random order until the request fits; if
    ``max_attempts`` are not enough the request fails. ``strict``: of all
    combinations of servers on all hosts the one that leaves the least memory
    unused, then the fewest vCPUs (``ram_`` and ``vcpu_sorting_priority``).
    ``watermark``: a task every 10 s deletes servers of random hosts while more
    than this percentage of the cloud is in use.

    Source: github.com/ttsiouts/aardvark, branch master, 3bf62bf (2020):
    aardvark/reaper/strategies/{chance,strict,utils}.py,
    aardvark/reaper/reaper.py and aardvark/notifications/endpoints.py. The rule
    of ``strict`` looks at each of the 2**n combinations; here equal sums are
    counted once, which finds the same one.
    """

    RETRIES = 5
    WAIT_S = 20
    PERIOD_S = 10

    def __init__(self, *arguments, strategy='strict', max_attempts=5,
                 first='MEMORY_MB', watermark=None):
        self._pick = {'chance': self._chance, 'strict': self._strict}[strategy]
        self._max_attempts = max_attempts
        self._first = first
        self._random = random.Random(f'aardvark/{arguments[2]}')
        self._rounds = collections.Counter()
        super().__init__(*arguments)
        if watermark is not None:
            self.every(self.PERIOD_S, lambda: self.end(self.timed(
                self.keep_free, 1 - watermark / 100, self._shuffled)))

    def _refuse(self, server):
        uuid = server.boot.id
        if server.kind.terms is None and self._rounds[uuid] < self.RETRIES:
            self._rounds[uuid] += 1
            victims = self.timed(self._pick, server.kind.resources)
            if victims is not None:
                self.boot_later(server, self.end(victims), self.WAIT_S)
                return
        super()._refuse(server)

    def _shuffled(self):
        hosts = list(self._world.cloud.hosts.values())
        self._random.shuffle(hosts)
        for host in hosts:
            spots = self.spots(host)
            self._random.shuffle(spots)
            yield from spots

    def _chance(self, wanted):
        """Return victims, None if the request fails."""
        valid = list(self.hosts(wanted))
        if not valid:
            return None
        host, spots = self._random.choice(valid)
        self._random.shuffle(spots)
        for number in range(min(len(spots), self._max_attempts) + 1):
            if not self.short(host, wanted, spots[:number]):
                return spots[:number]
        return None

    def _strict(self, wanted):
        """Return victims, None if the request fails."""
        found = []
        for order, (host, spots) in enumerate(self.hosts(wanted)):
            names = sorted(host.inventories, key=lambda name: (
                name != self._first, name not in ('VCPU', 'MEMORY_MB'), name))
            free = self.free(host)
            for left, combination in combinations(
                    [free[name] - wanted.get(name, 0) for name in names],
                    [[self.amounts(spot).get(name, 0) for name in names]
                     for spot in spots]):
                found.append((left, order, len(combination), combination,
                              spots))
        if not found:
            return None
        *_, combination, spots = min(found, key=lambda each: each[:4])
        return [spots[index] for index in combination]


def combinations(left, amounts):
    """Yield (amounts left over, indices) of the combinations that are enough.

    Of combinations of equal sums only the shortest and first. No combination
    that is enough grows any more: it would only leave more over.

    :param left: free amounts less the wanted ones, of each class
    :param amounts: those of each server
    """
    reached = {tuple(left): ()}
    for index, each in enumerate(amounts):
        for left, combination in list(reached.items()):
            if min(left) >= 0:
                continue
            grown = tuple(map(sum, zip(left, each, strict=True)))
            longer = (*combination, index)
            known = reached.get(grown)
            if known is None or (len(longer), longer) < (len(known), known):
                reached[grown] = longer
    for left, combination in reached.items():
        if min(left) >= 0:
            yield left, combination


class Watcher(Rival):
    """Watcher's approved spec of preemptible instances.

    A continuous audit looks every ``interval_s`` at the allocations of the
    whole cloud and deletes preemptible servers, oldest first, until
    ``free_percentage`` of the vCPUs and of the memory are free; servers
    younger than ``min_age_s`` are spared. With ``on_request`` a request
    without valid host starts an audit, too, which goes through the same list
    until some host has space for the request; the request is then booted once
    more, by whoever sent it. The spec has no hand-over.

    Source: opendev.org/openstack/watcher-specs, 815ed72 (2026-07-20),
    specs/2026.2/approved/preemptible-instances.rst: Optimization Target,
    Candidate Filtering & Invariants, Generalized Priority Sorting. It names no
    interval and leaves open who boots the request again.
    """

    WAIT_S = 120

    def __init__(self, *arguments, free_percentage=10, interval_s=60,
                 min_age_s=3600, on_request=False):
        self._min_age_us = min_age_s * SECOND
        self._on_request = on_request
        self._again = set()
        super().__init__(*arguments)
        if free_percentage:
            self.every(interval_s, lambda: self.end(self.timed(
                self.keep_free, free_percentage / 100, self._oldest)))

    def _oldest(self):
        servers = self._world.servers
        born_us = self._world.events.now_us - self._min_age_us
        spots = [spot for host in self._world.cloud.hosts.values()
                 for spot in self.spots(host)
                 if servers[spot.uuid].launched_us <= born_us]
        return sorted(spots, key=lambda spot: (
            servers[spot.uuid].launched_us, spot.uuid))

    def _until_it_fits(self, wanted):
        """Return victims, None if all are not enough on any host."""
        chosen = collections.defaultdict(list)
        victims = []
        for spot in self._oldest():
            host = self._world.servers[spot.uuid].current_host
            chosen[host.uuid].append(spot)
            victims.append(spot)
            if not self.short(host, wanted, chosen[host.uuid]):
                return victims
        return None

    def _refuse(self, server):
        uuid = server.boot.id
        if (self._on_request and server.kind.terms is None
                and uuid not in self._again):
            self._again.add(uuid)
            victims = self.timed(self._until_it_fits, server.kind.resources)
            if victims is not None:
                self.boot_later(server, self.end(victims), self.WAIT_S)
                return
        super()._refuse(server)


class Blazar(Rival):
    """Blazar's preemptible servers.

    When a reservation of a host starts, all preemptible servers there are
    deleted, whatever the request needs, and the host belongs to the request.
    Here each normal request without valid host reserves a host that starts at
    once, where the space is enough without the preemptible servers: the first
    by name, or a random one (``randomize_host_selection``). To be generous,
    the other space of the host stays open to all, and normal servers may run
    there; Blazar would need the host for itself.

    Source: opendev.org/openstack/blazar, acc44dc (2026-06-29),
    blazar/utils/openstack/nova.py (``terminate_preemptibles``) and
    blazar/plugins/oshosts/host_plugin.py.
    """

    def __init__(self, *arguments, randomize_host_selection=False):
        self._random = (random.Random(f'blazar/{arguments[2]}')
                        if randomize_host_selection else None)
        super().__init__(*arguments)

    def choose(self, server, attempt):
        found = super().choose(server, attempt)
        if found is not None or server.kind.terms is not None:
            return found
        valid = self.hosts(server.kind.resources)
        if self._random is None:
            host, spots = next(valid, (None, ()))
        else:
            host, spots = self._random.choice(list(valid) or [(None, ())])
        return None if host is None else (host.uuid, self._plan(
            host, spots, server.kind.request))

    def _plan(self, host, spots, request):
        there = Host(host.name, host.providers)
        victims = tuple(Candidate(spot.uuid, there.held(spot.uuid), 0)
                        for spot in spots)
        there = dataclasses.replace(there, candidates=victims)
        return Plan(there, capacity.missing(request, there),
                    VictimSet(victims, 0, optimal=False, steps=0),
                    {spot.uuid: spot for spot in spots})
