# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Scenario files: the hosts, servers and requests of a demo.

A file is YAML::

    description: One sentence for --list.          # optional
    hosts:
      - name: host-A
        vcpus: 8
        memory_mb: 16000
        disk_gb: 320
        servers:                                   # optional
          - {name: A1, flavor: medium}
          - {name: AP1, flavor: medium, uptime_min: 96, preemptible: true}
    flavors:
      medium: {vcpus: 2, memory_mb: 4000, disk_gb: 40}
    requests:
      - {name: new, flavor: medium}
      - {name: more, flavor: medium, preemptible: true, repeat: 3}
    expect:                                        # optional
      - {host: host-A, victims: [AP1], cost_s: 2160}
      - {outcome: placed}
    random:                                        # optional
      {seed: 1, requests: 10, preemptible: 0.5, max_uptime_min: 600}

``uptime_min`` is the age of a server in minutes (0 if left out). All requests
are decided one after the other at the same instant: a server has this age at
each of them, and servers that requests have added are 0 minutes old.

``repeat: 3`` stands for the requests more-1, more-2 and more-3. ``expect``
says what must come of the requests, in their order; what an entry leaves out
is not looked at.

``random`` fills the hosts with servers, then adds requests; the share
``preemptible`` of both is preemptible (0.5 if left out), and servers are some
whole minutes old, up to ``max_uptime_min`` (600 if left out). Equal seeds give
equal scenarios. With it ``requests`` may be left out.
"""

import dataclasses
import random
import re

from nova_preempt.embedded import nodes

# What Nova's database and API take for a size, and a hundred years.
MAX_SIZE = 2**31 - 1
MAX_UPTIME_MIN = 100 * 366 * 24 * 60
# More would be a typing error: each takes about a second.
MAX_REQUESTS = 1000
MAX_RANDOM_SERVERS = 1000

#: What Placement calls the sizes.
RESOURCES = {'vcpus': 'VCPU', 'memory_mb': 'MEMORY_MB', 'disk_gb': 'DISK_GB'}
OUTCOMES = ('placed', 'no_valid_host')
US_PER_MIN = 60_000_000

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,23}\Z')
_NAME_RULE = ('must be 1 to 24 letters, digits, dots, underscores and '
              'hyphens, the first a letter or digit')


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A size of servers."""

    vcpus: int
    memory_mb: int
    disk_gb: int


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server that is there from the beginning."""

    name: str
    flavor: str
    uptime_us: int = 0
    preemptible: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host and what is on it."""

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    servers: tuple[Server, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A server to be placed."""

    name: str
    flavor: str
    preemptible: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """What must come of a request; None is not looked at."""

    outcome: str | None = None
    host: str | None = None
    victims: tuple[str, ...] | None = None
    cost_us: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """A whole file, with what it repeats and draws written out."""

    description: str
    hosts: tuple[Host, ...]
    flavors: dict[str, Flavor]
    requests: tuple[Request, ...]
    expect: tuple[Expectation, ...]

    def needed(self, request):
        """Return {resource class: amount} of what a request asks for."""
        flavor = self.flavors[request.flavor]
        amounts = {resource: getattr(flavor, name)
                   for name, resource in RESOURCES.items()}
        return {name: amount for name, amount in amounts.items() if amount}


def parse(content, source):
    """Read a scenario.

    :param content: the bytes of the file
    :param source: what to call the file in errors
    :raises nodes.BadFile: it is none
    """
    return _Parser(source).parse(content)


class _Parser(nodes.Reader):
    """Reads one file."""

    def __init__(self, source):
        super().__init__(source)
        self._names = set()       # of servers and requests
        self._flavors = {}

    def parse(self, content):
        root = self.compose(content)
        keys = self.mapping(root, '', ('hosts', 'flavors'),
                            ('description', 'requests', 'expect', 'random'))
        if 'random' not in keys and 'requests' not in keys:
            self.fail(root, 'requests', 'is missing')
        description = ''
        if 'description' in keys:
            description = self.text(keys['description'], 'description')
        self._flavors = self._read_flavors(keys['flavors'])
        hosts = self._read_hosts(keys['hosts'])
        requests = self._read_requests(keys.get('requests'))
        if 'random' in keys:
            hosts, requests = self._draw(keys['random'], hosts, requests)
        expect = self._read_expect(keys.get('expect'), hosts, requests)
        return Scenario(_line(description), tuple(hosts), self._flavors,
                        tuple(requests), tuple(expect))

    # -- flavors and hosts -----------------------------------------------

    def _read_flavors(self, node):
        flavors = {}
        for key, value in self.pairs(node, 'flavors'):
            name = self._name(key, 'flavors')
            keys = self.mapping(value, f'flavors.{name}', RESOURCES)
            flavors[name] = Flavor(**self._sizes(
                keys, f'flavors.{name}', least_disk=0))
        if not flavors:
            self.fail(node, 'flavors', 'must not be empty')
        return flavors

    def _sizes(self, keys, path, least_disk):
        least = {'disk_gb': least_disk}
        return {name: self.integer(keys[name], f'{path}.{name}',
                                   least.get(name, 1), MAX_SIZE)
                for name in RESOURCES}

    def _read_hosts(self, node):
        names = set()
        hosts = [self._read_host(item, path, names)
                 for item, path in self.items(node, 'hosts')]
        if not hosts:
            self.fail(node, 'hosts', 'must not be empty')
        return hosts

    def _read_host(self, node, path, names):
        keys = self.mapping(node, path, ('name', *RESOURCES), ('servers',))
        name = self._name(keys['name'], f'{path}.name')
        self._take(keys['name'], f'{path}.name', name, names)
        host = Host(name, **self._sizes(keys, path, least_disk=1))
        for item, item_path in self.items(keys.get('servers'),
                                          f'{path}.servers'):
            server = self._read_server(item, item_path)
            lack = self._lack(host, server)
            if lack:
                self.fail(item, item_path,
                          f'{server.name} does not fit {name}: {lack}')
            host = _with_server(host, server)
        return host

    def _read_server(self, node, path):
        keys = self.mapping(node, path, ('name', 'flavor'),
                            ('uptime_min', 'preemptible'))
        name = self._name(keys['name'], f'{path}.name')
        self._take(keys['name'], f'{path}.name', name, self._names)
        uptime = 0
        if 'uptime_min' in keys:
            uptime = self.number(keys['uptime_min'], f'{path}.uptime_min',
                                 0, MAX_UPTIME_MIN)
        return Server(name, self._flavor(keys, path),
                      round(uptime * US_PER_MIN),
                      self._preemptible(keys, path))

    def _lack(self, host, server):
        """Say which resource of the host one more server is too much for."""
        for name in RESOURCES:
            needed = sum(getattr(self._flavors[item.flavor], name)
                         for item in (*host.servers, server))
            if needed > getattr(host, name):
                return f'{name} {needed} of {getattr(host, name)}'
        return ''

    # -- requests --------------------------------------------------------

    def _read_requests(self, node):
        requests = []
        for item, path in self.items(node, 'requests'):
            requests += self._read_request(item, path)
            self._check_number(item, path, requests)
        if node is not None and not requests:
            self.fail(node, 'requests', 'must not be empty')
        return requests

    def _check_number(self, node, path, requests):
        if len(requests) > MAX_REQUESTS:
            self.fail(node, path, f'makes {len(requests)} requests, more '
                                  f'than {MAX_REQUESTS}')

    def _read_request(self, node, path):
        keys = self.mapping(node, path, ('name', 'flavor'),
                            ('preemptible', 'repeat'))
        name = self._name(keys['name'], f'{path}.name')
        names = [name]
        if 'repeat' in keys:
            times = self.integer(keys['repeat'], f'{path}.repeat', 1,
                                 MAX_REQUESTS)
            names = [f'{name}-{number + 1}' for number in range(times)]
        for name in names:
            self._take(keys['name'], f'{path}.name', name, self._names)
        flavor = self._flavor(keys, path)
        preemptible = self._preemptible(keys, path)
        return [Request(name, flavor, preemptible) for name in names]

    def _read_expect(self, node, hosts, requests):
        items = self.items(node, 'expect')
        if len(items) > len(requests):
            item, path = items[len(requests)]
            self.fail(item, path,
                      f'is one more than there are requests, {len(requests)}')
        known = {host.name for host in hosts}
        servers = {server.name for host in hosts for server in host.servers}
        expect = []
        for (item, path), request in zip(items, requests, strict=False):
            expect.append(self._read_expectation(item, path, known, servers))
            servers.add(request.name)
        return expect

    def _read_expectation(self, node, path, hosts, servers):
        keys = self.mapping(node, path, (),
                            ('outcome', 'host', 'victims', 'cost_s'))
        values = {}
        if 'outcome' in keys:
            values['outcome'] = self.one_of(
                keys['outcome'], f'{path}.outcome', OUTCOMES, 'outcome')
        if 'host' in keys:
            values['host'] = self.one_of(
                keys['host'], f'{path}.host', hosts, 'host')
        if 'victims' in keys:
            values['victims'] = tuple(sorted(
                self.one_of(item, item_path, servers, 'server')
                for item, item_path in self.items(
                    keys['victims'], f'{path}.victims')))
        if 'cost_s' in keys:
            values['cost_us'] = round(1_000_000 * self.number(
                keys['cost_s'], f'{path}.cost_s', 0, 60 * MAX_UPTIME_MIN))
        return Expectation(**values)

    # -- what is drawn ---------------------------------------------------

    def _draw(self, node, hosts, requests):
        keys = self.mapping(node, 'random', ('seed', 'requests'),
                            ('preemptible', 'max_uptime_min'))
        number = self.integer(keys['requests'], 'random.requests', 0,
                              MAX_REQUESTS)
        seed = self.integer(keys['seed'], 'random.seed', 0, MAX_SIZE)
        share, max_uptime = 0.5, 600
        if 'preemptible' in keys:
            share = self.number(keys['preemptible'], 'random.preemptible',
                                0, 1)
        if 'max_uptime_min' in keys:
            max_uptime = self.number(keys['max_uptime_min'],
                                     'random.max_uptime_min', 0,
                                     MAX_UPTIME_MIN)
        dice = _Dice(random.Random(seed), share, int(max_uptime))
        hosts = [self._fill(node, host, dice) for host in hosts]
        flavors = sorted(self._flavors)
        more = [Request(f'random-{index + 1}', dice.one_of(flavors),
                        dice.preemptible()) for index in range(number)]
        for request in more:
            self._take(node, 'random', request.name, self._names)
        self._check_number(node, 'random', requests + more)
        return hosts, requests + more

    def _fill(self, node, host, dice):
        """Add servers until none of any flavor fits."""
        while True:
            name = f'{host.name[:18]}-{len(host.servers) + 1}'
            fitting = [flavor for flavor in sorted(self._flavors)
                       if not self._lack(host, Server(name, flavor))]
            if not fitting:
                return host
            self._take(node, 'random', name, self._names)
            if len(self._names) > MAX_RANDOM_SERVERS:
                self.fail(node, 'random', 'the hosts are too large to be '
                          f'filled with {MAX_RANDOM_SERVERS} servers')
            host = _with_server(host, Server(
                name, dice.one_of(fitting), dice.uptime_us(),
                dice.preemptible()))

    # -- names and marks -------------------------------------------------

    def _name(self, node, path):
        name = self.text(node, path)
        if not _NAME.match(name):
            self.fail(node, path, f'{_NAME_RULE}, not {nodes.show(node)}')
        return name

    def _take(self, node, path, name, taken):
        if name in taken:
            self.fail(node, path, f'there is another {name}')
        taken.add(name)

    def _flavor(self, keys, path):
        return self.one_of(keys['flavor'], f'{path}.flavor', self._flavors,
                           'flavor')

    def _preemptible(self, keys, path):
        return ('preemptible' in keys and self.boolean(
            keys['preemptible'], f'{path}.preemptible'))


class _Dice:
    """What ``random`` draws."""

    def __init__(self, generator, share, max_uptime_min):
        self._generator = generator
        self._share = share
        self._max_uptime_min = max_uptime_min

    def one_of(self, items):
        return items[self._generator.randrange(len(items))]

    def preemptible(self):
        return self._generator.random() < self._share

    def uptime_us(self):
        return self._generator.randrange(
            self._max_uptime_min + 1) * US_PER_MIN


def _with_server(host, server):
    return dataclasses.replace(host, servers=(*host.servers, server))


def _line(text):
    """Return a text on one line that a terminal can show."""
    return ' '.join(''.join(
        char if char.isprintable() else ' ' for char in text).split())
