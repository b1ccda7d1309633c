# SPDX-License-Identifier: Apache-2.0
"""Random actions of users while services fail.

NOVA_PREEMPT_RANDOM_S says for how many seconds they do (60), and
NOVA_PREEMPT_RANDOM_SEED by which random numbers (1); what the threads do at
the same time differs from run to run all the same.
"""

import collections
import datetime
import functools
import os
import random
import threading
import time
import warnings

from nova.tests.functional.api import client as api_client
from oslo_db import exception as db_exception
from testtools import content

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.embedded import embedded_cloud
from nova_preempt.handover import process_lease
from tests.functional import base

SECONDS = float(os.environ.get('NOVA_PREEMPT_RANDOM_S', '60'))
SEED = int(os.environ.get('NOVA_PREEMPT_RANDOM_SEED', '1'))
USERS = 3
HOSTS = 4
#: How often a call of ours to a service fails, before or after it has done
#: what it was asked for.
FAILS = 0.04

#: (name, vCPUs, extra specs) of the preemptible flavors.
SPOTS = (
    ('plain', 1, {}),
    ('large', 2, {}),
    ('noticed', 1, {'preemptible:notice_s': '2'}),
    ('shelved', 1, {'preemptible:action': 'shelve',
                    'preemptible:restore': 'true',
                    'preemptible:notice_s': '1'}),
    ('stopped', 1, {'preemptible:action': 'stop'}),
    ('moved', 2, {'preemptible:action': 'migrate',
                  'preemptible:notice_s': '3'}),
    ('promised', 1, {'preemptible:minimum_runtime_s': '20'}),
    ('short', 1, {'preemptible:maximum_runtime_s': '30'}),
)
#: What users ask of servers of theirs, and what Nova has to be asked then.
ACTIONS = ('delete', 'delete', 'delete', 'os-stop', 'os-start', 'shelve',
           'shelveOffload', 'unshelve', 'lock', 'unlock', 'resize',
           'confirmResize', 'revertResize', 'migrate', 'os-migrateLive',
           'pause', 'unpause', 'forceDelete')


class TestRandom(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        # Nova writes a second row of what a server has beside its record where
        # it is deleted while it is built, and its fixtures forbid warnings.
        warnings.filterwarnings('ignore', message='Multiple rows returned')
        self.flags(service_down_time=3600)
        self.patch(process_lease, 'INTENT_TIMEOUT_S', 10)
        self.flags(termination_timeout_s=20, group='preemption')
        self.restart_scheduler()
        self._service_fixture_count['scheduler'] = 0
        second = self.start_service('scheduler', host='scheduler2')
        self.schedulers = [self.scheduler, second.manager]
        self.clock = second.manager.clock = lambda: datetime.datetime.now(
            datetime.timezone.utc)
        self.flags(notice_s=0, group='preemption')
        self.flavors = {
            name: self.create_flavor(f'spot-{name}', vcpus, vcpus * 1024,
                                     vcpus * 10, preemptible=True, **specs)
            for name, vcpus, specs in SPOTS}
        self.normal = [self.small, self.big,
                       self.create_flavor('huge', 4, 4096, 40)]
        for number in range(HOSTS):
            self.add_host(f'host{number}', 6, 6144, 60)
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.calm = threading.Event()
        self.kind = {}            # server: whether it is preemptible
        self.deleted = set()      # those that a user asked to delete
        self.log = collections.deque(maxlen=400)
        self.counts = collections.Counter()
        self.over = []

    # -- those who act ---------------------------------------------------

    def note(self, what, *details):
        with self.lock:
            self.counts[what] += 1
            self.log.append((round(time.monotonic(), 1), what, *details))

    def user(self, number):
        rng = random.Random(SEED * 1000 + number)
        while not self.stop.is_set():
            with self.lock:
                mine = sorted(set(self.kind) - self.deleted)
            try:
                if len(mine) < 8 or rng.random() < 0.45:
                    self.boot_something(rng)
                else:
                    self.act_on(rng, rng.choice(mine))
            except api_client.OpenStackApiException as exc:
                # Nova answers some of them with 500 while a server is built.
                self.note(f'refused by {exc.response.status_code}')
            self.stop.wait(rng.uniform(0.05, 0.6))

    def boot_something(self, rng):
        preemptible = rng.random() < 0.6
        flavor = (self.flavors[rng.choice(SPOTS)[0]] if preemptible
                  else rng.choice(self.normal))
        body = self._build_server(
            name=f'random{rng.getrandbits(32):08x}', flavor_id=flavor,
            image_uuid='155d900f-4e14-4e4c-a73d-069cbf4541e6',
            networks='none')
        count = rng.choice((1, 1, 1, 2))
        body.update(min_count=count, max_count=count)
        known = self.api.post_server({'server': body})
        with self.lock:
            self.kind[known['id']] = preemptible
        if count > 1:
            found = [server['id'] for server in self.servers()
                     if server['name'].startswith(body['name'])]
            with self.lock:
                self.kind.update(dict.fromkeys(found, preemptible))
        self.note('boot', known['id'], preemptible, count)

    def act_on(self, rng, server):
        action = rng.choice(ACTIONS)
        self.note(action, server)
        if action in ('delete', 'forceDelete'):
            with self.lock:
                self.deleted.add(server)
        if action == 'delete':
            self.api.delete_server(server)
            return
        arguments = {
            'resize': lambda: {'flavorRef': (
                self.flavors[rng.choice(SPOTS)[0]] if self.kind[server]
                else rng.choice(self.normal))},
            'os-migrateLive': lambda: {'host': None,
                                       'block_migration': 'auto'},
        }.get(action, lambda: None)()
        self.api.post_server_action(server, {action: arguments})

    def operator(self):
        """Pauses preemption now and then, and goes on."""
        rng = random.Random(SEED * 1000 + 500)
        while not self.stop.wait(rng.uniform(5, 15)):
            pauses.pause(self.db, pauses.PREEMPTION, 'at random')
            self.note('paused')
            self.stop.wait(rng.uniform(0, 3))
            pauses.resume(self.db, pauses.PREEMPTION)

    def engine(self):
        engine = self.start_engine()
        engine._monotonic = time.monotonic
        while not self.calm.wait(1):
            engine.run_once()

    def periodic(self):
        """Run the periodic tasks of the services."""
        while not self.calm.wait(2):
            for scheduler in self.schedulers:
                scheduler._refresh_preemptible_servers(None)
                scheduler._repair()

    def watch(self):
        capacities = self.capacities()
        while not self.calm.wait(0.2):
            for host, allocations in self.allocations().items():
                used = collections.Counter()
                for resources in allocations.values():
                    used.update(resources)
                self.over += [(host, name, amount) for name, amount
                              in used.items()
                              if amount > capacities[host][name]]

    def break_calls(self):
        """Calls of the schedulers to services fail at random."""
        rng = random.Random(SEED * 1000 + 600)
        for scheduler in self.schedulers:
            parts = scheduler.preemption
            for target, error, names in (
                    (parts.clients.placement,
                     placement_api.PlacementError, (
                         'post_allocations', 'get_consumer',
                         'get_provider_state', 'list_providers')),
                    (parts.clients.nova, nova_api.NovaError, (
                        'force_delete', 'get', 'shelve', 'stop', 'lock',
                        'set_notice', 'shelve_offload', 'live_migrate')),
                    (parts.process.decisions, db_exception.DBError, (
                        'create_decision', 'update_decision',
                        'update_victim', 'get_open_decisions'))):
                for name in names:
                    setattr(target, name, self.breaking(
                        getattr(target, name), error, rng))

    def breaking(self, real, error, rng):
        @functools.wraps(real)
        def call(*args, **kwargs):
            with self.lock:
                lot = rng.random()
            if self.stop.is_set() or lot > FAILS:
                return real(*args, **kwargs)
            if lot < FAILS / 2:
                real(*args, **kwargs)
            self.note('fails', real.__name__)
            raise error('at random')
        return call

    # -- what has to be so afterwards ------------------------------------

    def busy(self):
        """Return servers that Nova or our services still change."""
        # Nova leaves some that are deleted while they fail as they are.
        return [server['id'] for server in map(self.known, self.servers())
                if server['status'] in ('BUILD', 'RESIZE')
                or (server['OS-EXT-STS:task_state'] is not None
                    and not (server['status'] == 'ERROR'
                             and server['id'] in self.deleted))]

    def known(self, server):
        """A server of Nova's list as it is.

        Where one of several that are booted at once is deleted before Nova
        gives them up, the list shows the later ones as being built for ever:
        ConductorManager._bury_in_cell0 does not get to their build requests.
        """
        if server['status'] != 'BUILD':
            return server
        try:
            return self.api.get_server(server['id'])
        except api_client.OpenStackApiNotFoundException:
            return {**server, 'status': 'DELETED',
                    'OS-EXT-STS:task_state': None}

    def come_to_rest(self):
        def settled():
            for scheduler in self.schedulers:
                scheduler._repair()
            return not (self.decisions.get_open_decisions() or self.busy())

        try:
            self.wait_for(settled, 'rest')
        except embedded_cloud.CloudError:
            left = set(self.busy())
            self.fail([self.decisions.get_open_decisions(), [
                (server['id'], server['status'],
                 server['OS-EXT-STS:task_state'])
                for server in self.servers() if server['id'] in left]])

    def test_invariants_hold_under_random_actions_and_failures(self):
        self.break_calls()
        threads = [threading.Thread(target=function, args=arguments)
                   for function, *arguments in (
                       *((self.user, number) for number in range(USERS)),
                       (self.operator,), (self.engine,), (self.periodic,),
                       (self.watch,))]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        self.stop.set()
        for thread in threads[:USERS + 1]:
            thread.join()
        try:
            self.come_to_rest()
        finally:
            self.calm.set()
            for thread in threads[USERS + 1:]:
                thread.join()
            self.addDetail('acts', content.text_content(
                f'seed {SEED}: {dict(self.counts)}'))
        self.addDetail('last acts', content.text_content(
            '\n'.join(map(str, self.log))))
        self.check()

    def check(self):
        self.assertEqual([], self.over)
        self.assertGreater(self.counts['boot'], SECONDS / 10)
        left = {server['id']: server for server in self.servers()}
        records = self.decisions.get_decisions()
        done = [decision for decision in records
                if decision.status == decisions.DONE]
        self.assertTrue(done or SECONDS < 60)
        victims = collections.defaultdict(list)
        for decision in records:
            if decision.status != decisions.REFUSED:
                for victim in decision.victims:
                    victims[victim.server_uuid].append(
                        (decision.status, victim.status, decision.uuid))
        # Nobody is gone but whom a user has deleted, or who has ended by a
        # decision, and no normal server by any.
        for server, preemptible in self.kind.items():
            if server in left or server in self.deleted:
                continue
            self.assertTrue(preemptible, f'{server} is lost')
            self.assertTrue(victims[server], f'{server} is lost')
        self.assertEqual([], [
            server for server in victims if not self.kind.get(server, True)])
        self.assert_space_is_right(left)

    def assert_space_is_right(self, left):
        """Check that each server has its own allocation in Placement."""
        on_hosts = {
            uuid: server['OS-EXT-SRV-ATTR:host']
            for uuid, server in left.items()
            if server['OS-EXT-SRV-ATTR:host']
            and server['status'] not in ('SHELVED_OFFLOADED', 'ERROR')}
        found = collections.defaultdict(set)
        for host, allocations in self.allocations().items():
            for consumer in allocations:
                found[consumer].add(host)
        for server, host in on_hosts.items():
            if left[server]['status'] != 'VERIFY_RESIZE':
                self.assertIn(host, found[server], (server, left[server]))
        # A migration that waits for a confirmation holds space by its own
        # id; nothing else does that is no server.
        confirming = sum(server['status'] == 'VERIFY_RESIZE'
                         for server in left.values())
        strangers = set(found) - set(left)
        self.assertLessEqual(len(strangers), confirming, strangers)
