# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for all commands of openstackclient."""

import configparser
import importlib
import pathlib
import unittest
from unittest import mock

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import sentences
from nova_preempt.client import table_text
from tests.unit.client import test_preemption_commands

ROOT = pathlib.Path(__file__).parents[3]
GROUP = 'openstack.preemption.v1'
OLD = 'openstack.extension'


def commands(group):
    """Return {name: class} of the entry points of setup.cfg."""
    setup = configparser.RawConfigParser()
    setup.read(ROOT / 'setup.cfg')
    found = {}
    for line in setup['entry_points'][group].strip().splitlines():
        name, _, path = line.partition(' = ')
        module, _, attribute = path.partition(':')
        found[name.replace('_', ' ')] = getattr(
            importlib.import_module(module), attribute)
    return found


def parser(command):
    return command(mock.Mock(NAME='openstack'), None).get_parser('openstack')


class TestAllCommands(unittest.TestCase):

    def test_each_argument_has_help(self):
        self.assertEqual([], [
            (name, action.dest)
            for name, command in commands(GROUP).items()
            for action in parser(command)._actions if not action.help])

    def test_each_list_says_why_it_is_empty(self):
        lists = {name: command for name, command in commands(GROUP).items()
                 if issubclass(command, base.ListCommand)}
        self.assertIn('preemption list', lists)
        self.assertEqual([], [name for name, command in lists.items()
                              if not command.empty.endswith(('.', '?'))])

    def test_set_and_unset_print_nothing(self):
        for name, command in commands(GROUP).items():
            if name.endswith((' set', ' unset', ' delete')):
                self.assertTrue(issubclass(command, base.ActionCommand), name)

    def test_old_names_are_hidden(self):
        old, new = commands(OLD), commands(GROUP)
        self.assertEqual(set(), old.keys() & new.keys())
        for name, command in old.items():
            self.assertTrue(command.deprecated, name)
            self.assertIn(command.__base__, new.values())


class TestOutput(test_preemption_commands.ClientTestCase):

    def add_three(self):
        for number, host in enumerate(('b', 'a', '')):
            self.add(f'd{number}', 'p', [('v', 'p', 'spot')], number,
                     host=host)

    def hosts(self, *arguments):
        return [item['Host'] for item in self.json(
            'preemption', 'list', '--all-projects', *arguments,
            token='admin:z')]

    def test_sort(self):
        self.add_three()
        self.assertEqual(['', 'a', 'b'], self.hosts('--sort', 'host'))
        self.assertEqual(['b', 'a', ''], self.hosts('--sort', 'Host:desc'))
        self.assertEqual(['', 'a', 'b'], self.hosts(
            '--sort', 'status', '--sort', 'created_at:asc'))
        # A column of --long.
        self.hosts('--sort', 'cost_s')
        self.assertIn('columns are cost_s, created_at, flavor,',
                      self.openstack('preemption', 'list', '--sort', 'x',
                                     code=1))
        with self.assertRaises(SystemExit):
            self.openstack('preemption', 'list', '--sort', 'host:up')

    def test_empty_cells_are_last(self):
        rows = [{'A': base.ValueColumn(value)} for value in (2, None, 1)]
        for is_descending, expected in ((False, [1, 2, None]),
                                        (True, [2, 1, None])):
            base._sort(rows, ['A'], 'a', is_descending)
            self.assertEqual(expected, [
                row['A'].machine_readable() for row in rows])

    def test_empty(self):
        self.assertIn('No preemption has affected servers of this project.',
                      self.openstack('preemption', 'list'))
        self.assertIn('Nothing matches --status.', self.openstack(
            'preemption', 'list', '--status', 'done'))
        self.assertEqual('[]', self.openstack(
            'preemption', 'list', '-f', 'json').strip())

    def test_nothing_is_there(self):
        text = self.openstack('preemption', 'list', auth=[
            '--os-auth-type', 'admin_token', '--os-endpoint',
            'http://127.0.0.1:9', '--os-token', 'u:p'], code=1)
        self.assertEqual('The service cannot be reached; does it run, and is '
                         'its endpoint right?\n', text)

    def test_a_page_of_a_proxy(self):
        page = b'<html>\n<h1>Bad</h1>\n<p>Gateway</p>\n</html>'

        def app(environ, start):
            if environ['PATH_INFO'].endswith('/preemptions'):
                start('502 Bad Gateway', [('Content-Type', 'text/html')])
                return [page]
            return self.app(environ, start)

        text = self.openstack('preemption', 'list', auth=[
            '--os-auth-type', 'admin_token', '--os-endpoint',
            self.listen(app), '--os-token', 'u:p'], code=1)
        self.assertEqual('Bad: Gateway\n', text)

    def test_table_of_an_object(self):
        uuid = self.add('a', 'p', [('v1', 'p', 'spot')])
        lines = self.openstack('preemption', 'show', uuid,
                               token='admin:z').splitlines()
        self.assertRegex(lines[3], r'^\| why +\| 1 server was evicted for a '
                         r'server of flavor normal \(create\): of host1\.')
        self.assertNotIn('{', '\n'.join(lines))

    def test_old_names(self):
        self.openstack('preemption', 'stats')
        text = self.openstack('help', 'preemption', 'stats')
        self.assertIn('preemption stats [-h]', text)


class TestBlazar(test_preemption_commands.ClientTestCase):

    def warned(self, *words):
        with mock.patch('sys.argv', ['openstack', *words]), mock.patch(
                'importlib.util.find_spec', return_value=object()), \
                self.assertNoLogs('nova_preempt.client.osc_plugin'):
            self.openstack('preemption', 'list')

    def test_clash(self):
        self.warned('preemption', 'host', 'list')
        self.warned('reservation', 'list')
        with self.assertRaisesRegex(AssertionError, 'preemption host list'):
            self.warned('reservation', 'host', 'list')

    def test_without_it(self):
        with mock.patch('sys.argv', ['openstack', 'reservation', 'host']), \
                self.assertNoLogs('nova_preempt.client.osc_plugin'):
            self.openstack('preemption', 'list')

    def test_a_name_of_its_own(self):
        self.inventory.add('host1')
        self.assertEqual('host1', self.json(
            'preemption', 'host', 'list', token='admin:z')[0]['Name'])


class TestText(unittest.TestCase):

    def test_numbers(self):
        for value, text in (
                (0.1 + 0.2, '0.3'), (1 / 3, '0.3333'), (12345.678, '12346'),
                (2.5e12, '2.5 T'), (-3e6, '-3 M'), (True, 'True'),
                (1234567, '1234567'), (None, ''), (0.0, '0'),
                (6e-05, '0.00006'), (-0.00051, '-0.00051'), (1e-9, '0')):
            self.assertEqual(text, table_text.scalar(value))

    def test_nested(self):
        self.assertEqual('a: 1\nb: c: (d: 2, 3)',
                         table_text.block({
                             'a': 1, 'b': {'c': {'d': [2, 3]}}, 'e': None}))
        self.assertEqual('x: 1, cost_s: 2\nx: 2', table_text.block(
            [{'x': 1, 'cost_us': 2_000_000}, {'x': 2, 'y': ''}]))
        self.assertEqual('["and", [">=", "$vcpus", 8]]', table_text.block(
            ['and', ['>=', '$vcpus', 8]]))

    def test_ids(self):
        self.assertEqual(
            {'server': {'s', 't', 'u'}, 'project': {'p'}},
            table_text.find_ids({
                'id': 'x', 'server': {'id': 's', 'project_id': 'p'},
                'servers': [{'id': 't'}], 'considered': [
                    {'victims': ['u'], 'host': 'h'}]}))


class TestSentences(unittest.TestCase):

    def preemption(self, **values):
        return sentences.preemption({
            'id': 'x', 'status': 'done', 'operation': 'create',
            'server': None, 'victims': [{}, {}], **values})

    def test_preemptions(self):
        for text, values in (
                ('2 servers were evicted for another server (create).', {}),
                ('1 server is being evicted to keep the headroom free.',
                 {'status': 'claimed', 'victims': [{}],
                  'operation': 'headroom'}),
                ('2 servers were kept after all for a server of flavor f: x.',
                 {'status': 'rolled_back', 'server': {'flavor': 'f'},
                  'reason': 'x.'}),
                ('No server was evicted for a server of flavor f: all locked.',
                 {'status': 'refused', 'server': {'flavor': 'f'},
                  'reason': 'all locked'})):
            self.assertEqual(text, self.preemption(**values).replace(
                'f (create)', 'f'))
        self.assertIn('preemption show x', sentences.preemption({'id': 'x'}))

    def test_every_status(self):
        """No status and no operation lacks words."""
        for status in argtypes.PREEMPTION_STATUSES:
            self.assertTrue(self.preemption(status=status))
        for status in argtypes.RESERVATION_STATUSES:
            self.assertTrue(sentences.reservation({
                'status': status, 'quantity': 2, 'start_at': 'a', 'hosts': [],
                'end_at': 'b', 'reason': ''}).endswith('.'))
        for status in argtypes.REQUEST_STATUSES:
            text = sentences.backlog_request({
                'status': status, 'count': 2, 'servers': [
                    {'status': 'running'}], 'waits_for': {}, 'reason': ''})
            self.assertIn(text[:2], ('It', 'So'))
            self.assertNotIn(f'It is {status}', text.replace('is done', ''))

    def test_requests(self):
        self.assertEqual(
            'It waits for capacity at position 3, for about 60 s more: no '
            'host has 4 VCPU free.', sentences.backlog_request({
                'status': 'waiting', 'position': 3, 'estimate_s': 60,
                'waits_for': {'text': 'no host has 4 VCPU free'},
                'reason': '', 'servers': [], 'count': 1}))

    def test_explanations(self):
        self.assertEqual(
            'The hosts draw 300 W; 1.5 kWh were saved since S, and 2 of 3 '
            'hosts sleep.', sentences.energy({
                'watts': 300.0, 'saved_kwh': 1.5, 'since': 'S',
                'hosts': {'on': 1, 'asleep': 2}}))
        self.assertEqual('0 kWh were saved since S.', sentences.energy({
            'saved_kwh': 0.0, 'since': 'S'}))
        self.assertEqual(
            'It would evict 3 servers on host host1, of which you see 1: '
            'host1 lacks 1 VCPU.', sentences.explanation({
                'outcome': 'preempts', 'host': 'host1', 'victim_count': 3,
                'victims': [{}], 'reason': 'host1 lacks 1 VCPU'}))


