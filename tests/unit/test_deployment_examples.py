# SPDX-License-Identifier: Apache-2.0
"""Tests of the kolla-ansible and openstack-ansible examples.

Neither of both runs here: these tests check the options, programs and files
of nova-preempt that the examples name.
"""

import configparser
import importlib
import os
import pathlib
import re
import ssl
import unittest

import jinja2
import nova.conf
import sqlalchemy
import yaml

from nova_preempt.conf import opts

ROOT = pathlib.Path(__file__).parents[2]
KOLLA = ROOT / 'etc' / 'kolla-ansible'
OSA = ROOT / 'etc' / 'openstack-ansible'
AUTHORITIES = ssl.get_default_verify_paths().openssl_cafile


def options():
    """{group: names} of ours, and of Nova's scheduler."""
    found = {'filter_scheduler': set(nova.conf.CONF.filter_scheduler)}
    for group, members in opts.list_opts():
        found.setdefault(str(group), set()).update(
            option.dest for option in members)
    return found


def fragment():
    """{group: {option: [values]}} of nova.conf as the guide has it."""
    return values((ROOT / 'etc/nova-preempt/nova.conf.fragment').read_text())


def values(text):
    """{group: {option: [values]}}, an option being there more than once."""
    found, group = {}, None
    for line in text.splitlines():
        if line.startswith('['):
            group = found.setdefault(line.strip('[]'), {})
        elif line and not line.startswith('#'):
            name, _, value = line.partition(' = ')
            group.setdefault(name, []).append(value)
    return found


def load(path):
    return yaml.safe_load(path.read_text())


def rendered(text, **names):
    """Render a template as Ansible does, with stand-ins of its filters."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters.update(
        bool=bool, put_address_in_context=lambda address, _context: address)
    return environment.from_string(text).render(names)


def verifies(connection):
    """Return whether a connection of PyMySQL would check a certificate."""
    context = getattr(connection, 'ctx', None)
    return context is not None and context.verify_mode == ssl.CERT_REQUIRED


class TestExamples(unittest.TestCase):

    def check_options(self, groups):
        known = options()
        for group, members in groups.items():
            self.assertLessEqual(set(members), known[group], group)
        # What the guide tells everybody to set is there.
        wanted = fragment()
        for group in ('filter_scheduler', 'preemption'):
            self.assertLessEqual(
                {re.sub('_domain_(id|name)$', '_domain', name)
                 for name in wanted[group]} - {'enabled_filters'},
                {re.sub('_domain_(id|name)$', '_domain', name)
                 for name in groups[group]})
        self.assertTrue(groups['preemption_database']['connection'])

    def check_programs(self, text):
        setup = configparser.ConfigParser()
        setup.read(ROOT / 'setup.cfg')
        known = set(re.findall(
            r'(?m)^(\S+) =', setup['entry_points']['console_scripts']))
        found = set(re.findall(r'(?:/|-sf |command: >-\s+)'
                               r'(nova-preempt-\w+)', text))
        self.assertTrue(found)
        self.assertLessEqual(found, known)

    def check_application(self, text):
        (module, name), = re.findall(r'(nova_preempt[.\w]+):(\w+)', text)
        spec = importlib.util.find_spec(module)
        self.assertIn(f'\n{name} = ', pathlib.Path(spec.origin).read_text())

    def test_kolla_options(self):
        found = values((KOLLA / 'config/nova/nova-scheduler.conf')
                       .read_text())
        self.check_options(found)
        self.assertEqual(fragment()['filter_scheduler'],
                         found['filter_scheduler'])

    def test_kolla_playbook(self):
        text = (KOLLA / 'nova-preempt.yml').read_text()
        self.check_programs(text)
        self.check_application(text)
        play, = load(KOLLA / 'nova-preempt.yml')
        programs = play['vars']['programs']
        for name in ('nova-preempt-engine', 'nova-preempt-webhook'):
            self.check_known(values(programs[name]['own']))
        ours = values((ROOT / 'etc/nova-preempt/nova-preempt-api.ini')
                      .read_text())['uwsgi']
        theirs = values(programs['nova-preempt-api']['own'])['uwsgi']
        for name in set(ours) - {'http-socket'}:
            self.assertEqual(ours[name], theirs[name])

    def test_all_services_are_started(self):
        """The examples start each service that has a systemd unit.

        The scheduler is not among them: it runs in place of Nova's.
        """
        wanted = {path.stem for path in (ROOT / 'etc/systemd').glob(
            '*.service')} - {'nova-preempt-scheduler'}
        play, = load(KOLLA / 'nova-preempt.yml')
        self.assertEqual(wanted, set(play['vars']['programs']))
        play, = load(OSA / 'nova-preempt.yml')
        _ports, services, api = play['tasks']
        self.assertEqual(wanted, {
            *api['vars']['uwsgi_services'],
            *(service['service_name']
              for service in services['vars']['systemd_services'])})

    def check_known(self, groups):
        known = options()
        for group, members in groups.items():
            self.assertLessEqual(set(members), known[group])

    def test_kolla_images(self):
        text = (KOLLA / 'template-overrides.j2').read_text()
        self.check_programs(text)
        self.assertEqual(1, text.count('{% block'))
        self.assertEqual({'nova-base-plugin-nova-preempt'}, set(values(
            (KOLLA / 'kolla-build.conf').read_text())))
        self.assertIn('nova_scheduler_image_full',
                      load(KOLLA / 'globals.yml'))

    def test_ports_that_are_scraped(self):
        found = load(KOLLA / 'config/prometheus/prometheus.yml.d'
                     / 'nova-preempt.yml')
        ports = {target.rpartition(':')[2]
                 for job in found['scrape_configs']
                 for group in job['static_configs']
                 for target in group['targets']}
        texts = [(KOLLA / name).read_text() for name in (
            'config/nova/nova-scheduler.conf', 'nova-preempt.yml')]
        self.assertEqual(ports, set(re.findall(
            r'metrics_port = (\d+)', ''.join(texts))))

    def test_openstack_ansible_options(self):
        found = load(OSA / 'group_vars' / 'nova_scheduler.yml')
        groups = found['nova_nova_conf_overrides']
        self.check_options(groups)
        scheduler = fragment()['filter_scheduler']
        self.assertEqual(scheduler['available_filters'],
                         list(groups['filter_scheduler']['available_filters']))
        self.assertEqual(scheduler['weight_classes'][0].split(','),
                         groups['filter_scheduler']['weight_classes'])
        user = load(OSA / 'user_nova_preempt.yml')
        self.assertLessEqual(
            set(user['nova_scheduler_extra_filters']),
            set(scheduler['enabled_filters'][0].split(',')))
        self.check_programs((OSA / 'user_nova_preempt.yml').read_text())

    def test_openstack_ansible_playbook(self):
        text = (OSA / 'nova-preempt.yml').read_text()
        self.check_programs(text)
        self.check_application(text)
        play, = load(OSA / 'nova-preempt.yml')
        content = play['tasks'][0]['ansible.builtin.copy']['content']
        self.check_known(values(content))

    def test_malloc_arenas_are_limited(self):
        """The variable is there before each of the processes starts."""
        # All are started from this image.
        self.assertIn('\nENV MALLOC_ARENA_MAX=2\n',
                      (KOLLA / 'template-overrides.j2').read_text())
        unit = load(OSA / 'user_nova_preempt.yml')[
            'nova_scheduler_init_overrides']
        play, = load(OSA / 'nova-preempt.yml')
        services = play['tasks'][1]['vars']['systemd_services']
        api, = play['tasks'][2]['vars']['uwsgi_services'].values()
        for service in services:
            self.assertEqual({'MALLOC_ARENA_MAX': '2'},
                             service['environment'])
        for overrides in (unit, api['init_config_overrides']):
            self.assertEqual('MALLOC_ARENA_MAX=2',
                             overrides['Service']['Environment'])

    def check_connection(self, connection, verified):
        """Assert whether a connection verifies the certificate."""
        engine = sqlalchemy.create_engine(connection)
        args, kwargs = engine.dialect.create_connect_args(engine.url)
        found = engine.dialect.dbapi.connect(
            *args, **kwargs, defer_connect=True)
        self.assertIs(verified, verifies(found))

    def test_kolla_connections(self):
        groups = values((KOLLA / 'config/nova/nova-scheduler.conf')
                        .read_text())
        for verified in (False, True):
            self.check_connection(rendered(
                groups['preemption_database']['connection'][0],
                nova_preempt_database_password='secret',
                database_address='192.0.2.1', database_port=3306,
                nova_database_enable_tls_internal=verified,
                openstack_cacert=AUTHORITIES), verified)

    def test_openstack_ansible_connections(self):
        groups = load(OSA / 'group_vars' / 'nova_scheduler.yml')[
            'nova_nova_conf_overrides']
        for verified, file in ((False, ''), (True, ''), (True, AUTHORITIES)):
            self.check_connection(rendered(
                groups['preemption_database']['connection'],
                nova_preempt_database_password='secret',
                nova_galera_address='192.0.2.1', nova_galera_port=3306,
                nova_galera_use_ssl=verified, nova_galera_ssl_ca_cert=file),
                verified)

    def test_all_files_are_named(self):
        page = (ROOT / 'doc' / 'source' / 'install.rst').read_text()
        for folder in (KOLLA, OSA):
            for parent, _folders, names in os.walk(folder):
                for name in names:
                    path = pathlib.Path(parent, name).relative_to(folder)
                    self.assertIn(f'``{path}``', page)
