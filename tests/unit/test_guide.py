# SPDX-License-Identifier: Apache-2.0
"""Commands and files in the guide and README are right.

What needs no cloud is run, with SQLite and with MariaDB; of the rest each
command is parsed by the program that it names.
"""

import configparser
import importlib
import itertools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock
import uuid

from openstackclient import shell as osc_shell
from osc_lib.command import commandmanager
from pip._internal import commands as pip_commands
import placement.conf
import webob

from nova_preempt import extra_spec_validators
from nova_preempt.cmd import demo
from nova_preempt.cmd import reproduce
from nova_preempt.cmd import simulate
from nova_preempt.db import schema_upgrade
from tests import processes

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / 'doc' / 'source'
BLOCK = re.compile(r'^( *)\.\. (code-block|literalinclude):: (\S+)\n'
                   r'((?:\1 +\S.*\n|\n)*)', re.M)
README = '../../README.rst'
#: In place of each program: print its arguments as they reach it. An "export"
#: must not lead to programs.
RECORD = ('export() { :; }\n'
          'command_not_found_handle() { '
          "printf '%s\\x1f' \"$@\"; printf '\\n'; }\n")
#: The database of MariaDB's administrator.
SERVER = {'host': '127.0.0.1', 'port': 3306, 'user': 'root'}
SQLITE_LINE = ('#connection = mysql+pymysql://'
               'nova_preempt:secret@controller/nova_preempt')
API_INI = '/etc/nova/nova-preempt-api.ini'
RESULT = re.compile(r'Check: (.+?) +\|\n\| Result: (\w+)')


def blocks(page, wanted):
    """The blocks of a page that are in a language."""
    text = (SOURCE / page).read_text()
    for _indent, kind, name, body in BLOCK.findall(text):
        if kind == 'literalinclude':
            if f':language: {wanted}\n' in body:
                yield (SOURCE / name).read_text()
        elif name == wanted:
            lines = body.strip('\n').splitlines()
            deep = min(len(line) - len(line.lstrip())
                       for line in lines if line)
            yield '\n'.join(line[deep:] for line in lines) + '\n'


def commands(program=None, page='install.rst'):
    """The arguments of each command of a page, as a shell makes them."""
    for block in blocks(page, 'console'):
        typed = '\n'.join(line[2:] for line in block.splitlines())
        found = subprocess.run(
            [shutil.which('bash')], input=RECORD + typed, text=True,
            capture_output=True, check=True, env={'PATH': '/nonexistent'})
        for line in found.stdout.splitlines():
            argv = line.split('\x1f')[:-1]
            if program in (None, argv[0]):
                yield argv


def typed(page, program):
    """The commands of a program, without shell variables replaced.

    Neither those that end in "..." nor the contents of files.
    """
    for block in blocks(page, 'console'):
        for text in re.findall(rf'(?m)^\$ ({program} (?:.*\\\n)*.*)$', block):
            argv = shlex.split(text.replace('\\\n', ''), comments=True)
            if argv[-1] != '...':
                yield [re.sub(r'^@.*', '[]', word)
                       for word in itertools.takewhile('|'.__ne__, argv)]


def units():
    """(name, text) of the files of systemd that the guide shows."""
    shown = [block for block in blocks('install.rst', 'ini')
             if '[Unit]' in block]
    for path in sorted((ROOT / 'etc' / 'systemd').glob('*.service')):
        if path.read_text() in shown:
            yield path.name, path.read_text()


def parse(block):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read_string(block)
    return parser


def uwsgi():
    block, = (block for block in blocks('install.rst', 'ini')
              if '[uwsgi]' in block)
    return parse(block)['uwsgi']


def run_program(name, argv):
    module = name.removeprefix('nova-preempt-')
    return importlib.import_module(f'nova_preempt.cmd.{module}').main(argv)


def parse_manage(argv):
    from nova_preempt.cmd import manage
    manage._parser().parse_args(argv)


def ask_health(module, environment):
    os.environ.update(environment)
    name, _, attribute = module.partition(':')
    application = getattr(importlib.import_module(name), attribute)
    answer = webob.Request.blank('/healthcheck').get_response(application)
    return answer.status_int - 200


def parse_openstack(argv):
    """Ends the test by SystemExit where there is no such command."""
    manager = commandmanager.CommandManager('openstack.cli')
    for group in ('common', 'identity.v3', 'compute.v2', 'preemption.v1'):
        manager.add_command_group(f'openstack.{group}')
    _options, rest = osc_shell.OpenStackShell().parser.parse_known_args(
        argv[1:])
    factory, name, rest = manager.find_command(rest)
    return factory(mock.Mock(), None).get_parser(name).parse_args(rest)


class TestReadme(unittest.TestCase):

    def test_all_programs_are_known(self):
        self.assertEqual(
            {'make', 'openstack', 'nova-preempt-demo',
             'nova-preempt-reproduce', 'nova-preempt-simulate'},
            {argv[0] for argv in commands(page=README)})

    def test_make(self):
        """There is a target for each that the text names."""
        makefile = (ROOT / 'Makefile').read_text()
        names = set(re.findall(r'(?:``|\$ )make ([a-z-]+)',
                               (SOURCE / README).read_text()))
        self.assertLessEqual({'demo', 'test', 'venv', 'docs', 'cloud-up'},
                             names)
        for name in names:
            self.assertRegex(makefile, rf'(?m)^[a-z -]*\b{name}\b[a-z -]*:')

    def test_openstack(self):
        found = list(commands('openstack', README))
        self.assertEqual(2, len(found))
        for argv in found:
            parse_openstack(argv)

    def test_ours(self):
        for name, *argv in commands('nova-preempt-demo', README):
            scenarios = demo._parse_args(argv).scenario
            self.assertLessEqual(set(scenarios), set(demo._shipped()), name)
        found = list(commands('nova-preempt-reproduce', README))
        self.assertEqual(3, len(found))
        for _name, *argv in found:
            reproduce.make_parser().parse_args(argv)
        generated, ran = (
            simulate.make_parser().parse_args(argv)
            for _name, *argv in commands('nova-preempt-simulate', README))
        self.assertEqual([generated.output], ran.trace)
        self.assertTrue((ROOT / ran.cloud).is_file())


class TestCommands(unittest.TestCase):
    """Programs of others."""

    def test_all_are_known(self):
        self.assertEqual(
            {'pip', 'openstack', 'systemctl', 'curl', 'nova-preempt-manage',
             'nova-preempt-status'}, {argv[0] for argv in commands()})

    def test_pip(self):
        setup = configparser.ConfigParser()
        setup.read(ROOT / 'setup.cfg')
        for _pip, name, *argv in commands('pip'):
            options, found = pip_commands.create_command(name).parse_args(argv)
            for path in options.constraints:
                self.assertTrue((ROOT / path).is_file(), path)
            for extra in re.fullmatch(r'\.\[(.+)\]', found[0])[1].split(','):
                self.assertIn(extra, setup['extras'])

    def test_openstack(self):
        found = list(commands('openstack'))
        # Three of them by the loop over the interfaces.
        self.assertEqual(8, len(found))
        for parsed in map(parse_openstack, found):
            for key in getattr(parsed, 'properties', None) or ():
                self.assertIn(key, [item.name for item in
                                    extra_spec_validators.register()])

    def test_openstack_on_all_pages(self):
        found = [argv for page in SOURCE.glob('*.rst')
                 for argv in typed(page.name, 'openstack')]
        self.assertLess(40, len(found))
        for argv in found:
            with self.subTest(' '.join(argv)):
                parse_openstack(argv)

    def test_systemctl(self):
        known = {'nova-scheduler'} | {
            name.removesuffix('.service') for name, _text in units()}
        for _name, verb, *argv in commands('systemctl'):
            self.assertIn(verb, ('daemon-reload', 'enable', 'disable'))
            self.assertEqual(['--now'] if argv else [], argv[:1])
            self.assertLessEqual(set(argv[1:]), known)

    def test_curl_asks_the_port_of_the_api(self):
        (_name, *argv), = commands('curl')
        self.assertEqual(
            ['-f', f'http://{uwsgi()["http-socket"]}/healthcheck'], argv)

    def test_uwsgi_says_that_it_closes_connections(self):
        """Or clients use one again at the moment at which it is closed."""
        self.assertEqual('Connection: close', uwsgi()['add-header'])

    def test_placement(self):
        block, = (block for block in blocks('install.rst', 'ini')
                  if '[placement]' in block)
        known = {option.name for option in
                 placement.conf.placement.placement_opts}
        self.assertLessEqual(set(parse(block)['placement']), known)


class TestUnits(unittest.TestCase):

    def test_each_names_a_program_and_files(self):
        setup = configparser.ConfigParser()
        setup.read(ROOT / 'setup.cfg')
        scripts = setup['entry_points']['console_scripts']
        found = dict(units())
        self.assertEqual({f'nova-preempt-{name}.service' for name in
                          ('api', 'engine', 'scheduler')}, set(found))
        for name, text in found.items():
            program, *argv = shlex.split(parse(text)['Service']['ExecStart'])
            program = program.removeprefix('/usr/bin/')
            self.assertIn(f'\n{program} = ', '\nuwsgi = ' + scripts)
            self.assertEqual(
                ['--ini', API_INI] if program == 'uwsgi'
                else ['--config-file', '/etc/nova/nova.conf'], argv, name)

    def test_all_units_restart_and_reload_alike(self):
        for name, text in units():
            found = parse(text)
            # After alone waits for nothing.
            self.assertEqual(found['Unit']['Wants'], found['Unit']['After'])
            # Sooner, systemd would give up while a database is away.
            self.assertEqual('5', found['Service']['RestartSec'], name)
            self.assertEqual('/bin/kill -HUP $MAINPID',
                             found['Service']['ExecReload'])

    def test_systemd_understands_them(self):
        program = shutil.which('systemd-analyze')
        if program is None:
            self.skipTest('there is no systemd-analyze')
        with tempfile.TemporaryDirectory() as folder:
            more = (ROOT / 'etc' / 'systemd' / 'hardening.conf').read_text()
            for name, text in units():
                path = pathlib.Path(folder, name)
                drop = pathlib.Path(folder, f'{name}.d', 'hardening.conf')
                drop.parent.mkdir()
                drop.write_text(more)
                path.write_text(re.sub('(?m)^ExecStart=/usr/bin/[^ ]+',
                                       'ExecStart=/bin/true', text))
                found = subprocess.run(
                    [program, 'verify', str(path)], capture_output=True,
                    text=True, check=False)
                self.assertNotIn(name, found.stdout + found.stderr)


class TestSetUp(unittest.TestCase):
    """Runs the guide with SQLite and a directory for /etc/nova."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        fragment, = (block for block in blocks('install.rst', 'ini')
                     if '[preemption]' in block)
        self.assertIn(SQLITE_LINE, fragment)
        tokens, = (block for block in blocks('install.rst', 'ini')
                   if '[keystone_authtoken]' in block)
        connection = self.make_database()
        if connection:
            fragment = fragment.replace(
                SQLITE_LINE, f'connection = {connection}')
        pathlib.Path(self.folder, 'nova.conf').write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\n'
            f'transport_url = fake://\n{fragment}{tokens}')

    def make_database(self):
        return None

    def run_apart(self, function, *args, code=0):
        found, out, err = processes.run(function, *args)
        self.assertEqual(code, found, out + err)
        return out + err

    def test_in_the_order_of_the_guide(self):
        done = []
        for name, *argv in commands():
            argv = [value.replace('/etc/nova', self.folder) for value in argv]
            if name == 'nova-preempt-status':
                # Warns that there are no flavors to look at.
                output = self.run_apart(run_program, name, argv, code=1)
                results = dict(RESULT.findall(output))
                self.assertEqual('Success', results['Database'])
                self.assertNotIn('Failure', results.values(), output)
            elif name != 'nova-preempt-manage':
                continue
            elif 'hand-back' in argv:
                self.run_apart(parse_manage, argv)
            else:
                output = self.run_apart(run_program, name, argv)
                self.assertIn('paused since' if 'pause' in argv else
                              schema_upgrade.latest_revision(), output)
            done.append(argv[2])
        self.assertEqual(
            ['db', 'upgrade', 'pause', 'hand-back', 'hand-back'], done)

    def test_api(self):
        name, _, folder = uwsgi()['env'].partition('=')
        self.assertEqual('/etc/nova', folder)
        self.run_apart(ask_health, uwsgi()['module'], {name: self.folder})


class TestSetUpOnMariaDB(TestSetUp):

    def make_database(self):
        import pymysql
        try:
            server = pymysql.connect(**SERVER, autocommit=True)
        except pymysql.err.OperationalError as exc:
            self.skipTest(f'no MariaDB to try it with: {exc}')
        self.addCleanup(server.close)
        name = f'np_{uuid.uuid4().hex[:12]}'
        statements, = (block for block in blocks('install.rst', 'sql')
                       if 'GRANT' in block)
        with server.cursor() as cursor:
            self.addCleanup(self.drop, server, name)
            for statement in statements.strip().split('\n'):
                cursor.execute(statement.replace('nova_preempt', name))
        return f'mysql+pymysql://{name}:secret@127.0.0.1/{name}'

    def drop(self, server, name):
        with server.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS {name}')
            cursor.execute(f"DROP USER IF EXISTS '{name}'@'%'")


if __name__ == '__main__':
    unittest.main()
