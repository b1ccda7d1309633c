# SPDX-License-Identifier: Apache-2.0
"""Plays a scenario on an embedded cloud."""

import dataclasses
import datetime
import sys

from nova_preempt.core import costs
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.embedded import embedded_cloud
from nova_preempt.embedded import fake_hypervisor

OPTIONS = {
    # Hosts with room are considered beside those that need victims.
    'preemption': {'consider': 'always', 'cost': 'partial_hour'},
    # Unused work that takes time.
    'api': {'response_validation': 'ignore'},
    'filter_scheduler': {'track_instance_changes': False},
    'notifications': {'notification_format': 'unversioned'},
}


@dataclasses.dataclass(frozen=True, slots=True)
class ServerState:
    """A server as Nova and Placement know it."""

    uuid: str
    name: str
    flavor: str
    preemptible: bool
    uptime_us: int
    resources: dict[str, int]

    @property
    def cost_us(self):
        """Cost of its preemption now."""
        return costs.partial_hour(
            costs.CostInputs(self.uuid, self.uptime_us,
                             self.resources), costs.CostOptions())


@dataclasses.dataclass(frozen=True, slots=True)
class HostState:
    """A host as Nova and Placement know it."""

    name: str
    capacity: dict[str, int]
    servers: tuple[ServerState, ...]

    @property
    def used(self):
        """{resource class: amount} of all its servers."""
        return {name: sum(server.resources.get(name, 0)
                          for server in self.servers)
                for name in self.capacity}

    def has_room(self, needed):
        """Tell whether {resource class: amount} is free."""
        used = self.used
        return all(used[name] + amount <= self.capacity[name]
                   for name, amount in needed.items())


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateHost:
    """A candidate host of a request, and the victims there."""

    host: str
    victims: tuple[str, ...]
    cost_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class RequestOutcome:
    """Outcome of a request: chosen is None if no host was found."""

    request: object
    chosen: CandidateHost | None
    considered: tuple[CandidateHost, ...]

    @property
    def name(self):
        """The outcome as scenario files call it."""
        return 'placed' if self.chosen else 'no_valid_host'


class ScenarioPlayer:
    """The cloud of a scenario: "with ScenarioPlayer(scenario) as player".

    The time that the scheduler sees stands still once all servers are there.
    So they have exactly the uptimes of the scenario at every request, and the
    uptime of added servers stays 0.
    """

    def __init__(self, scenario):
        self._scenario = scenario
        sizes = {host.name: fake_hypervisor.HostSize(host.vcpus,
                                                     host.memory_mb,
                                                     host.disk_gb)
                 for host in scenario.hosts}
        self._embedded = embedded_cloud.EmbeddedCloud(sizes, OPTIONS)
        self._cloud = None
        self._now = None
        self._reports = []
        self._flavors = {}        # (name, preemptible): id
        self._known = {}          # server id: Server or Request
        self._capacities = {}

    def __enter__(self):
        self._cloud = self._embedded.__enter__()
        try:
            # All hosts are weighed together.
            self._cloud.patch(preemption_policy, 'FIRST_BATCH', 1_000_000)
            self._set_up()
        except BaseException:
            self._embedded.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exc_info):
        self._embedded.__exit__(*exc_info)

    def _set_up(self):
        for flavor in self._cloud.api.get_flavors():
            # Flavors of Nova's tests could conflict with the scenario.
            self._cloud.api.delete_flavor(flavor['id'])
        for host in self._scenario.hosts:
            for server in host.servers:
                self._boot(server, host=host.name)
        for uuid in self._known:
            self._cloud.wait(uuid)
        self._now = datetime.datetime.now(datetime.timezone.utc)
        for uuid, server in self._known.items():
            self._cloud.set_uptime(uuid, server.uptime_us / 1e6, self._now)
        self._cloud.clock = lambda: self._now
        # The scheduler reads servers once it starts and every few seconds.
        self._cloud.scheduler.preemption.known.refresh()
        self._cloud.scheduler.observers.append(self._reports.append)
        self._capacities = self._cloud.capacities()

    def _boot(self, server, host=None):
        uuid = self._cloud.boot(
            server.name, self._flavor(server.flavor, server.preemptible),
            host=host)
        self._known[uuid] = server
        return uuid

    def _flavor(self, name, preemptible):
        if (name, preemptible) not in self._flavors:
            flavor = self._scenario.flavors[name]
            self._flavors[name, preemptible] = self._cloud.create_flavor(
                f'{name} (preemptible)' if preemptible else name,
                flavor.vcpus, flavor.memory_mb, flavor.disk_gb, preemptible)
        return self._flavors[name, preemptible]

    def hosts(self):
        """Return the current HostStates."""
        allocations = self._cloud.allocations()
        servers = {server['id']: server for server in self._cloud.servers()}
        return [HostState(host.name, self._capacities[host.name], tuple(sorted(
                    (self._state(host, uuid, servers.get(uuid), resources)
                     for uuid, resources in allocations[host.name].items()),
                    key=lambda server: server.name)))
                for host in self._scenario.hosts]

    def _state(self, host, uuid, server, resources):
        if server is None:
            raise embedded_cloud.CloudError(
                f'{host.name} has an allocation of {uuid}, but no such server')
        known = self._known[uuid]
        return ServerState(uuid, known.name, known.flavor, known.preemptible,
                           self._uptime_us(server), resources)

    def _uptime_us(self, server):
        launched_at = server['OS-SRV-USG:launched_at']
        if not launched_at:
            return 0
        age = self._now - datetime.datetime.fromisoformat(
            launched_at).replace(tzinfo=datetime.timezone.utc)
        return max(0, age // datetime.timedelta(microseconds=1))

    def play(self, request, hosts):
        """Ask Nova for a server and return the Outcome.

        :param hosts: the HostStates before
        """
        del self._reports[:]
        uuid = self._boot(request)
        server = self._cloud.settle(uuid)
        report, = self._reports
        if (report['outcome'] == 'placed') != (server['status'] == 'ACTIVE'):
            raise embedded_cloud.CloudError(
                f'the scheduler reports {report["outcome"]!r} for '
                f'{request.name}, but its status is {server["status"]}')
        chosen = None
        for placement in report['placements']:
            chosen = self._choice(placement['host'], [
                victim['server_uuid'] for victim in placement['victims']],
                placement['cost_us'])
        considered = [
            self._choice(item['host'], item['victims'], item['cost_us'])
            for item in report['considered']]
        if request.preemptible:
            # Nova alone schedules such a request, without a report.
            needed = self._scenario.needed(request)
            considered = [CandidateHost(host.name, (), 0) for host in hosts
                          if host.has_room(needed)]
        return RequestOutcome(request, chosen, tuple(sorted(
            considered, key=lambda choice: (
                bool(choice.victims), choice.cost_us, choice.host))))

    def _choice(self, host, victims, cost_us):
        return CandidateHost(host, tuple(sorted(
            self._known[uuid].name for uuid in victims)), cost_us)
