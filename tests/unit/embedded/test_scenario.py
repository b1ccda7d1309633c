# SPDX-License-Identifier: Apache-2.0
"""The scenario parser: valid files and error messages."""

import itertools
import textwrap

import testscenarios
import testtools

from nova_preempt.embedded import checked_yaml
from nova_preempt.embedded import scenario

GOOD = """\
hosts:
  - name: host-A
    vcpus: 4
    memory_mb: 8000
    disk_gb: 80
    servers:
      - {name: a, flavor: small}
      - name: b
        flavor: small
        uptime_min: 1.5
        preemptible: true
flavors:
  small: {vcpus: 1, memory_mb: 2000, disk_gb: 20}
  large: {vcpus: 8, memory_mb: 2000, disk_gb: 0}
requests:
  - {name: new, flavor: small}
  - {name: r, flavor: large, preemptible: true, repeat: 2}
expect:
  - {host: host-A, victims: [b, a], outcome: placed, cost_s: 90}
  - {victims: [new]}
  - {outcome: no_valid_host}
"""

RANDOM = 'random: {seed: 1, requests: 2}'

HUGE = '9' * 5000


class TestParse(testtools.TestCase):

    def parse(self, text):
        return scenario.parse(textwrap.dedent(text).encode(), 'file')

    def test_everything_that_a_file_may_say(self):
        parsed = self.parse('description: "Two\\tlines\\n of it\\e"\n' + GOOD)
        self.assertEqual(scenario.Scenario(
            'Two lines of it',
            (scenario.Host('host-A', 4, 8000, 80, (
                scenario.Server('a', 'small', 0, False),
                scenario.Server('b', 'small', 90_000_000, True))),),
            {'small': scenario.Flavor(1, 2000, 20),
             'large': scenario.Flavor(8, 2000, 0)},
            (scenario.Request('new', 'small'),
             scenario.Request('r-1', 'large', True),
             scenario.Request('r-2', 'large', True)),
            (scenario.Expectation('placed', 'host-A', ('a', 'b'),
                                  90_000_000),
             scenario.Expectation(victims=('new',)),
             scenario.Expectation('no_valid_host'))), parsed)

    def test_little_is_needed(self):
        parsed = self.parse("""
            hosts: [{name: h, vcpus: 1, memory_mb: 1, disk_gb: 1}]
            flavors: {f: {vcpus: 1, memory_mb: 1, disk_gb: 0}}
            requests: [{name: r, flavor: f}]
            """)
        self.assertEqual((), parsed.hosts[0].servers)
        self.assertEqual((), parsed.expect)
        self.assertEqual('', parsed.description)
        self.assertEqual({'VCPU': 1, 'MEMORY_MB': 1},
                         parsed.needed(parsed.requests[0]))

    def test_aliases_are_expanded(self):
        parsed = self.parse("""
            hosts:
              - {name: h, vcpus: 1, memory_mb: 1, disk_gb: 1, servers: &s []}
              - {name: i, vcpus: &n 2, memory_mb: *n, disk_gb: *n, servers: *s}
            flavors: {f: {vcpus: *n, memory_mb: 1, disk_gb: 0}}
            requests: [{name: r, flavor: f}]
            """)
        self.assertEqual((scenario.Host('h', 1, 1, 1),
                          scenario.Host('i', 2, 2, 2)), parsed.hosts)

    def test_a_server_that_just_fits(self):
        parsed = self.parse(GOOD.replace('{name: a, flavor: small}',
                                         '{name: a, flavor: big}')
                            .replace('large: {vcpus: 8',
                                     'big: {vcpus: 3')
                            .replace('flavor: large', 'flavor: big'))
        self.assertEqual('big', parsed.hosts[0].servers[0].flavor)

    def test_equal_seeds_give_equal_scenarios(self):
        one, same, other = (
            self.parse(GOOD + f'random: {{seed: {seed}, requests: 20}}')
            for seed in (1, 1, 2))
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)
        self.assertEqual(23, len(one.requests))
        self.assertEqual('random-20', one.requests[-1].name)
        self.assertIn('host-A-3', [server.name
                                   for server in one.hosts[0].servers])

    def test_random_alone_makes_requests(self):
        text = GOOD[:GOOD.index('requests:')]
        for share, marks in ((0, {False}), (1, {True})):
            parsed = self.parse(text + (
                'random: {seed: 3, requests: 5, max_uptime_min: 2.5, '
                f'preemptible: {share}}}'))
            self.assertEqual(marks, {request.preemptible
                                     for request in parsed.requests})
            servers = parsed.hosts[0].servers[2:]
            self.assertEqual(marks, {server.preemptible
                                     for server in servers})
            self.assertLessEqual({server.uptime_us for server in servers},
                                 {0, 60_000_000, 120_000_000})


def _cases():
    """(sentence, text of the file, message after "file:")."""
    def change(old, new):
        if GOOD.count(old) != 1:
            raise ValueError(f'{old!r} is not once in the file')
        return GOOD.replace(old, new)

    host = '    vcpus: 4\n'
    small = 'small: {vcpus: 1, memory_mb: 2000, disk_gb: 20}'
    uptime = 'uptime_min: 1.5'
    new = '{name: new, flavor: small}'
    last = '{outcome: no_valid_host}'
    name_rule = ('must be 1 to 24 letters, digits, dots, underscores and '
                 'hyphens, the first a letter or digit, not ')

    yield 'empty file', '', '1: must not be empty'
    yield 'only a comment', '# nothing\n', '1: must not be empty'
    yield 'not YAML', 'hosts:\n  - {name: a', (
        "2: invalid YAML: expected ',' or '}', but got '<stream end>'")
    yield 'tab', 'hosts:\n\t- a', (
        "2: invalid YAML: found character '\\t' that cannot start any token")
    yield 'two documents', GOOD + '---\na: b\n', (
        '22: invalid YAML: but found another document')
    yield 'unknown alias', change('flavor: large', 'flavor: *large'), (
        "17: invalid YAML: found undefined alias 'large'")
    yield 'not UTF-8', b'hosts:\n  - name: \xff\n', (
        '2: invalid YAML: invalid start byte')
    yield 'control character', 'hosts:\n\n  \x00', (
        '3: invalid YAML: special characters are not allowed')
    yield 'nested too deeply', '[' * 100000, '1: is nested too deeply'
    yield 'a word', 'hosts', "1: must be a mapping, not 'hosts'"
    yield 'a list', '\n- hosts', '2: must be a mapping, not a list'

    yield 'unknown key at the top', GOOD + 'hots: []', '22: hots: unknown key'
    yield 'unknown key of a host', change(host, host + '    cpus: 4\n'), (
        '4: hosts[0].cpus: unknown key')
    yield 'unknown key of a server', change(uptime, 'uptime: 1'), (
        '10: hosts[0].servers[1].uptime: unknown key')
    yield 'unknown key of a flavor', change(
        small, small[:-1] + ', disk_mb: 1}'), (
        '13: flavors.small.disk_mb: unknown key')
    yield 'unknown key of a request', change(new, new[:-1] + ', host: a}'), (
        '16: requests[0].host: unknown key')
    yield 'unknown key of an expectation', change(last, '{hosts: a}'), (
        '21: expect[2].hosts: unknown key')
    yield 'unknown key of random', GOOD + RANDOM[:-1] + ', n: 1}', (
        '22: random.n: unknown key')
    yield 'strange key', change(host, host + '    "x\\ny": 4\n'), (
        "4: hosts[0].'x\\ny': unknown key")
    yield 'merge key', change(host, host + '    <<: {a: 1}\n'), (
        "4: hosts[0].'<<': unknown key")
    yield 'many aliases', GOOD + ''.join(
        f'{name}: &{name} [{", ".join([f"*{before}"] * 10)}]\n'
        for before, name in itertools.pairwise('abcdefghijkl')).replace(
            '*a', 'a'), '22: b: unknown key'
    yield 'alias of itself', GOOD + 'a: &a [*a]', '1: is nested too deeply'
    yield 'key that is a list', change(host, host + '    ? [a]\n    : b\n'), (
        '4: hosts[0]: a key must be text, not a list')

    yield 'no hosts', GOOD[GOOD.index('flavors'):], '1: hosts: is missing'
    yield 'no flavors', 'hosts: []', '1: flavors: is missing'
    yield 'no requests', GOOD[:GOOD.index('requests')], (
        '1: requests: is missing')
    yield 'host without a size', change(host, ''), (
        '2: hosts[0].vcpus: is missing')
    yield 'host without a name', change('- name: host-A\n    vcpus',
                                        '- vcpus'), (
        '2: hosts[0].name: is missing')
    yield 'server without a flavor', change('{name: a, flavor: small}',
                                            '{name: a}'), (
        '7: hosts[0].servers[0].flavor: is missing')
    yield 'flavor without a disk', change(small, 'small: {vcpus: 1, '
                                          'memory_mb: 2}'), (
        '13: flavors.small.disk_gb: is missing')
    yield 'request without a name', change(new, '{flavor: small}'), (
        '16: requests[0].name: is missing')
    yield 'random without a seed', GOOD + 'random: {requests: 1}', (
        '22: random.seed: is missing')

    yield 'key twice', change(host, host * 2), (
        '4: hosts[0].vcpus: duplicate key')
    yield 'key twice at the top', GOOD + 'flavors: {}', (
        '22: flavors: duplicate key')
    yield 'flavor twice', change('large: {', 'small: {'), (
        '14: flavors.small: duplicate key')
    yield 'host twice', change('flavors:\n', (
        '  - {vcpus: 1, memory_mb: 1, disk_gb: 1, name: host-A}\n'
        'flavors:\n')), '12: hosts[1].name: the name host-A is used twice'
    yield 'server twice', change('- name: b', '- name: a'), (
        '8: hosts[0].servers[1].name: the name a is used twice')
    yield 'request like a server', change('name: new', 'name: a'), (
        '16: requests[0].name: the name a is used twice')
    yield 'request twice', change('name: new', 'name: r-2'), (
        '17: requests[1].name: the name r-2 is used twice')
    yield 'server like a random one', change(
        'name: a,', 'name: host-A-3,') + RANDOM, (
        '22: random: the name host-A-3 is used twice')
    yield 'request like a random one', change(
        'name: new', 'name: random-1') + RANDOM, (
        '22: random: the name random-1 is used twice')

    yield 'hosts are a mapping', change(
        GOOD[:GOOD.index('flavors:')], 'hosts: {a: 1}\n'), (
        '1: hosts: must be a list, not a mapping')
    yield 'no host in the list', change(
        GOOD[:GOOD.index('flavors:')], 'hosts: []\n'), (
        '1: hosts: must not be empty')
    yield 'a host that is a word', change(
        GOOD[:GOOD.index('flavors:')], 'hosts: [a]\n'), (
        "1: hosts[0]: must be a mapping, not 'a'")
    yield 'servers that are nothing', change(
        GOOD[GOOD.index('      - {name: a'):GOOD.index('flavors:')], ''), (
        '6: hosts[0].servers: must be a list, not nothing')
    yield 'flavors are a list', change(
        GOOD[GOOD.index('flavors:'):GOOD.index('requests:')],
        'flavors: [a]\n').replace('flavor: small', 'flavor: a'), (
        '12: flavors: must be a mapping, not a list')
    yield 'empty flavors', change(
        GOOD[GOOD.index('flavors:'):GOOD.index('requests:')],
        'flavors: {}\n'), '12: flavors: must not be empty'
    yield 'empty requests', change(
        GOOD[GOOD.index('requests:'):], 'requests: []\n'), (
        '15: requests: must not be empty')
    yield 'victims that are a word', change('[new]', 'new'), (
        "20: expect[1].victims: must be a list, not 'new'")
    yield 'description that is a number', GOOD + 'description: 1', (
        '22: description: must be text, not 1')

    yield 'text for a size', change(host, '    vcpus: four\n'), (
        "3: hosts[0].vcpus: must be a whole number, not 'four'")
    yield 'quoted number', change(host, '    vcpus: "4"\n'), (
        "3: hosts[0].vcpus: must be a whole number, not '4'")
    yield 'bool for a size', change(host, '    vcpus: true\n'), (
        '3: hosts[0].vcpus: must be a whole number, not true')
    yield 'fraction for a size', change(host, '    vcpus: 4.0\n'), (
        '3: hosts[0].vcpus: must be a whole number, not 4.0')
    yield 'nothing for a size', change(host, '    vcpus:\n'), (
        '3: hosts[0].vcpus: must be a whole number, not nothing')
    yield 'zero size', change(host, '    vcpus: 0\n'), (
        '3: hosts[0].vcpus: must be from 1 to 2147483647, not 0')
    yield 'host without disk space', change('disk_gb: 80', 'disk_gb: 0'), (
        '5: hosts[0].disk_gb: must be from 1 to 2147483647, not 0')
    yield 'negative size', change('memory_mb: 8000', 'memory_mb: -1'), (
        '4: hosts[0].memory_mb: must be from 1 to 2147483647, not -1')
    yield 'flavor without memory', change(
        small, 'small: {vcpus: 1, memory_mb: 0, disk_gb: 1}'), (
        '13: flavors.small.memory_mb: must be from 1 to 2147483647, not 0')
    yield 'negative disk of a flavor', change('disk_gb: 0}', 'disk_gb: -1}'), (
        '14: flavors.large.disk_gb: must be from 0 to 2147483647, not -1')
    yield 'more than Nova can count', change(host, f'    vcpus: {2**31}\n'), (
        '3: hosts[0].vcpus: must be from 1 to 2147483647, not 2147483648')
    yield 'more than Python reads', change(host, f'    vcpus: {HUGE}\n'), (
        '3: hosts[0].vcpus: must be from 1 to 2147483647, not ' + '9' * 40)
    yield 'tag that does not hold', change(host, '    vcpus: !!int x\n'), (
        '3: hosts[0].vcpus: must be from 1 to 2147483647, not x')
    yield 'empty with a tag', change(host, '    vcpus: !!int ""\n'), (
        '3: hosts[0].vcpus: must be from 1 to 2147483647, not ')

    yield 'bool for an uptime', change(uptime, 'uptime_min: false'), (
        '10: hosts[0].servers[1].uptime_min: must be a number, not false')
    for value in ('-0.5', '-1', '.nan', '.inf', '-.inf', '52704001'):
        yield f'uptime of {value}', change(uptime, f'uptime_min: {value}'), (
            '10: hosts[0].servers[1].uptime_min: must be from 0 to 52704000, '
            f'not {value}')
    yield 'word for a bool', change('        preemptible: true',
                                    '        preemptible: maybe'), (
        '11: hosts[0].servers[1].preemptible: must be true or false, not '
        "'maybe'")
    yield 'number for a bool', change('preemptible: true, r',
                                      'preemptible: 1, r'), (
        '17: requests[1].preemptible: must be true or false, not 1')
    yield 'bool that is none', change('        preemptible: true',
                                      '        preemptible: !!bool x'), (
        '11: hosts[0].servers[1].preemptible: must be true or false, not x')
    yield 'no repeats', change('repeat: 2', 'repeat: 0'), (
        '17: requests[1].repeat: must be from 1 to 1000, not 0')
    yield 'too many requests', change('repeat: 2', 'repeat: 1000'), (
        '17: requests[1]: makes 1001 requests, more than 1000')
    yield 'too many random requests', GOOD + RANDOM.replace(
        'requests: 2', 'requests: 1000'), (
        '22: random: makes 1003 requests, more than 1000')
    yield 'hosts without end', change(host, '    vcpus: 8000000\n').replace(
        'memory_mb: 8000', 'memory_mb: 800000000').replace(
        'disk_gb: 80', 'disk_gb: 800000000') + RANDOM, (
        '22: random: the hosts are too large to be filled with 1000 servers')
    yield 'share of more than all', GOOD + RANDOM[:-1] + ', preemptible: 2}', (
        '22: random.preemptible: must be from 0 to 1, not 2')

    yield 'number for a name', change('name: new', 'name: 1'), (
        '16: requests[0].name: must be text, not 1')
    yield 'bool for a name', change('name: host-A', 'name: on'), (
        '2: hosts[0].name: must be text, not on')
    for name in ('""', '"a b"', '"a/b"', '-a', f'"{"a" * 25}"', '"a\\n"'):
        shown = repr(name.strip('"').replace('\\n', '\n'))
        yield f'name {name}', change('name: new', f'name: {name}'), (
            f'16: requests[0].name: {name_rule}{shown}')
    yield 'flavor with a strange name', change('small: {', '"s l": {'), (
        f"13: flavors: {name_rule}'s l'")
    yield 'flavor of a server unknown', change(
        '{name: a, flavor: small}', '{name: a, flavor: tiny}'), (
        "7: hosts[0].servers[0].flavor: there is no flavor 'tiny'")
    yield 'flavor of a request unknown', change(
        new, '{name: new, flavor: tiny}'), (
        "16: requests[0].flavor: there is no flavor 'tiny'")

    yield 'too many vCPUs', change('{name: a, flavor: small}',
                                   '{name: a, flavor: large}'), (
        '7: hosts[0].servers[0]: a does not fit on host-A: vcpus is 8, '
        'more than 4')
    yield 'too much memory in all', change('memory_mb: 8000',
                                           'memory_mb: 3999'), (
        '8: hosts[0].servers[1]: b does not fit on host-A: memory_mb is '
        '4000, more than 3999')
    yield 'too much disk in all', change('disk_gb: 80', 'disk_gb: 39'), (
        '8: hosts[0].servers[1]: b does not fit on host-A: disk_gb is '
        '40, more than 39')

    yield 'more expected than asked for', GOOD + '  - {}\n', (
        '22: expect[3]: must not have more items than requests, 3')
    yield 'unknown host expected', change('{host: host-A,',
                                          '{host: host-B,'), (
        "19: expect[0].host: there is no host 'host-B'")
    yield 'unknown victim expected', change('[b, a]', '[b, c]'), (
        "19: expect[0].victims[1]: there is no server 'c'")
    yield 'victim of before its time', change('[b, a]', '[new]'), (
        "19: expect[0].victims[0]: there is no server 'new'")
    yield 'unknown outcome expected', change(last, '{outcome: lost}'), (
        "21: expect[2].outcome: there is no outcome 'lost'")
    yield 'negative cost expected', change('cost_s: 90', 'cost_s: -1'), (
        '19: expect[0].cost_s: must be from 0 to 3162240000, not -1')


class TestBadFiles(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = [(sentence, {'content': content, 'message': message})
                 for sentence, content, message in _cases()]

    def test_says_where_and_why(self):
        content = self.content
        if isinstance(content, str):
            content = content.encode()
        error = self.assertRaises(checked_yaml.BadFile, scenario.parse,
                                  content, 'file')
        self.assertEqual(f'file:{self.message}'.strip(), str(error))
