# SPDX-License-Identifier: Apache-2.0
"""Parser of scenario files: hosts, servers and requests of a demo.

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
lists the expected outcomes of the requests, in their order; members left out
of an entry are not checked.

``random`` fills the hosts with servers, then adds requests; the share
``preemptible`` of both is preemptible (0.5 if left out), and servers are some
whole minutes old, up to ``max_uptime_min`` (600 if left out). Equal seeds give
equal scenarios. With it ``requests`` may be left out.
"""

import dataclasses
import random

from nova_preempt.embedded import checked_yaml

# Limits: a size in Nova's database and API, and a hundred years.
MAX_SIZE = 2**31 - 1
MAX_UPTIME_MIN = 100 * 366 * 24 * 60
# More would be a typing error: each takes about a second.
MAX_REQUESTS = 1000
MAX_RANDOM_SERVERS = 1000

#: {size: resource class of Placement}.
RESOURCES = {'vcpus': 'VCPU', 'memory_mb': 'MEMORY_MB', 'disk_gb': 'DISK_GB'}
OUTCOMES = ('placed', 'no_valid_host')
US_PER_MIN = 60_000_000

_NAME = {
    'type': 'string', 'pattern': r'^[A-Za-z0-9][A-Za-z0-9._-]{0,23}\Z',
    'description': 'must be 1 to 24 letters, digits, dots, underscores and '
                   'hyphens, the first a letter or digit'}
_PLACED = {'name': _NAME, 'flavor': checked_yaml.TEXT}


def _sizes(least_disk):
    return {'vcpus': checked_yaml.integer(1, MAX_SIZE),
            'memory_mb': checked_yaml.integer(1, MAX_SIZE),
            'disk_gb': checked_yaml.integer(least_disk, MAX_SIZE)}


_UPTIME_MIN = checked_yaml.number(0, MAX_UPTIME_MIN)
_HOST = checked_yaml.mapping({'name': _NAME, **_sizes(least_disk=1)}, {
    'servers': {'type': 'array', 'items': checked_yaml.mapping(
        _PLACED, {'uptime_min': _UPTIME_MIN,
                  'preemptible': checked_yaml.FLAG})}})
_REQUEST = checked_yaml.mapping(_PLACED, {
    'preemptible': checked_yaml.FLAG,
    'repeat': checked_yaml.integer(1, MAX_REQUESTS)})
_EXPECTATION = checked_yaml.mapping({}, {
    'outcome': {'type': 'string', 'enum': OUTCOMES, 'title': 'outcome'},
    'host': checked_yaml.TEXT,
    'victims': {'type': 'array', 'items': checked_yaml.TEXT},
    'cost_s': checked_yaml.number(0, 60 * MAX_UPTIME_MIN)})
_RANDOM = checked_yaml.mapping({
    'seed': checked_yaml.integer(0, MAX_SIZE),
    'requests': checked_yaml.integer(0, MAX_REQUESTS),
}, {'preemptible': checked_yaml.number(0, 1), 'max_uptime_min': _UPTIME_MIN})
SCHEMA = checked_yaml.mapping({
    'hosts': {'type': 'array', 'minItems': 1, 'items': _HOST},
    'flavors': {'type': 'object', 'minProperties': 1, 'propertyNames': _NAME,
                'additionalProperties': checked_yaml.mapping(
                    _sizes(least_disk=0))},
}, {
    'description': checked_yaml.TEXT,
    'requests': {'type': 'array', 'minItems': 1, 'items': _REQUEST},
    'expect': {'type': 'array', 'items': _EXPECTATION},
    'random': _RANDOM})


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A size of servers."""

    vcpus: int
    memory_mb: int
    disk_gb: int


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server that exists before the requests."""

    name: str
    flavor: str
    uptime_us: int = 0
    preemptible: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host and its servers."""

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
    """Expected outcome of a request; None is not checked."""

    outcome: str | None = None
    host: str | None = None
    victims: tuple[str, ...] | None = None
    cost_us: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """Content of a file, with repeated and random items expanded."""

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
    :raises checked_yaml.BadFile: the file is no valid scenario
    """
    return _Parser(checked_yaml.CheckedYaml(source, content, SCHEMA)).parse()


class _Parser:
    """Reads one file, whose schema holds."""

    def __init__(self, file):
        self._fail = file.fail
        self._show = file.show
        self._content = file.value
        self._names = set()       # of servers and requests
        self._flavors = {name: Flavor(**sizes) for name, sizes
                         in file.value['flavors'].items()}

    def parse(self):
        content = self._content
        if 'random' not in content and 'requests' not in content:
            self._fail(('requests',), 'is missing')
        names = set()
        hosts = [self._read_host(item, ('hosts', number), names)
                 for number, item in enumerate(content['hosts'])]
        requests = []
        for number, item in enumerate(content.get('requests', ())):
            path = ('requests', number)
            requests += self._read_request(item, path)
            self._check_number(path, requests)
        if 'random' in content:
            hosts, requests = self._draw(content['random'], hosts, requests)
        expect = self._read_expect(content.get('expect', ()), hosts, requests)
        return Scenario(_line(content.get('description', '')), tuple(hosts),
                        self._flavors, tuple(requests), tuple(expect))

    def _read_host(self, item, path, names):
        self._take((*path, 'name'), item['name'], names)
        host = Host(**{**item, 'servers': ()})
        for number, each in enumerate(item.get('servers', ())):
            server_path = (*path, 'servers', number)
            server = self._read_server(each, server_path)
            shortfall = self._shortfall(host, server)
            if shortfall:
                self._fail(server_path, f'{server.name} does not fit on '
                                        f'{host.name}: {shortfall}')
            host = _with_server(host, server)
        return host

    def _read_server(self, item, path):
        self._take((*path, 'name'), item['name'], self._names)
        self._check_known(path, 'flavor', item['flavor'], self._flavors)
        return Server(item['name'], item['flavor'],
                      round(item.get('uptime_min', 0) * US_PER_MIN),
                      item.get('preemptible', False))

    def _shortfall(self, host, server):
        """Return which resource of the host one more server exceeds, or ''."""
        for name in RESOURCES:
            needed = sum(getattr(self._flavors[item.flavor], name)
                         for item in (*host.servers, server))
            if needed > getattr(host, name):
                return f'{name} is {needed}, more than {getattr(host, name)}'
        return ''

    def _check_number(self, path, requests):
        if len(requests) > MAX_REQUESTS:
            self._fail(path, f'makes {len(requests)} requests, more than '
                             f'{MAX_REQUESTS}')

    def _read_request(self, item, path):
        names = [item['name']]
        if 'repeat' in item:
            names = [f'{item["name"]}-{number + 1}'
                     for number in range(item['repeat'])]
        for name in names:
            self._take((*path, 'name'), name, self._names)
        self._check_known(path, 'flavor', item['flavor'], self._flavors)
        return [Request(name, item['flavor'], item.get('preemptible', False))
                for name in names]

    def _read_expect(self, items, hosts, requests):
        if len(items) > len(requests):
            self._fail(('expect', len(requests)), 'must not have more items '
                       f'than requests, {len(requests)}')
        known = {host.name for host in hosts}
        servers = {server.name for host in hosts for server in host.servers}
        expect = []
        for number, (item, request) in enumerate(
                zip(items, requests, strict=False)):
            expect.append(self._read_expectation(
                item, ('expect', number), known, servers))
            servers.add(request.name)
        return expect

    def _read_expectation(self, item, path, hosts, servers):
        if 'host' in item:
            self._check_known(path, 'host', item['host'], hosts)
        victims = item.get('victims')
        for number, name in enumerate(victims or ()):
            self._check_known((*path, 'victims'), number, name, servers,
                              'server')
        cost_s = item.get('cost_s')
        return Expectation(
            item.get('outcome'), item.get('host'),
            None if victims is None else tuple(sorted(victims)),
            None if cost_s is None else round(1_000_000 * cost_s))

    def _draw(self, how, hosts, requests):
        draws = _RandomDraws(
            random.Random(how['seed']), how.get('preemptible', 0.5),
            int(how.get('max_uptime_min', 600)))
        hosts = [self._fill(host, draws) for host in hosts]
        flavors = sorted(self._flavors)
        more = [Request(f'random-{index + 1}', draws.one_of(flavors),
                        draws.preemptible())
                for index in range(how['requests'])]
        for request in more:
            self._take(('random',), request.name, self._names)
        self._check_number(('random',), requests + more)
        return hosts, requests + more

    def _fill(self, host, draws):
        """Add servers until no flavor fits."""
        while True:
            name = f'{host.name[:18]}-{len(host.servers) + 1}'
            fitting = [flavor for flavor in sorted(self._flavors)
                       if not self._shortfall(host, Server(name, flavor))]
            if not fitting:
                return host
            self._take(('random',), name, self._names)
            if len(self._names) > MAX_RANDOM_SERVERS:
                self._fail(('random',), 'the hosts are too large to be '
                           f'filled with {MAX_RANDOM_SERVERS} servers')
            host = _with_server(host, Server(
                name, draws.one_of(fitting), draws.uptime_us(),
                draws.preemptible()))

    def _take(self, path, name, taken):
        if name in taken:
            self._fail(path, f'the name {name} is used twice')
        taken.add(name)

    def _check_known(self, path, key, value, known, what=None):
        if value not in known:
            path = (*path, key)
            self._fail(path, f'there is no {what or key} {self._show(path)}')


class _RandomDraws:
    """Draws of ``random``."""

    def __init__(self, generator, share, max_uptime_min):
        self._generator = generator
        self._share = share
        self._max_uptime_min = max_uptime_min

    def one_of(self, items):
        return items[self._generator.randrange(len(items))]

    def preemptible(self):
        return self._generator.random() < self._share

    def uptime_us(self):
        return self._generator.randrange(self._max_uptime_min + 1) * US_PER_MIN


def _with_server(host, server):
    return dataclasses.replace(host, servers=(*host.servers, server))


def _line(text):
    """Return a text on one line that a terminal can show."""
    return ' '.join(''.join(
        char if char.isprintable() else ' ' for char in text).split())
