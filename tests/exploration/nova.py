# SPDX-License-Identifier: Apache-2.0
"""Nova in memory: its servers and the calls of its API.

States, task states and refusals are those of nova/compute/api.py; the order in
which allocations come and go is that of nova/conductor/manager.py and
nova/compute/manager.py. What takes time is a task of the process "nova", which
does not crash; a compute service does. tests/cloud_port runs the same tests on
it and on Nova. Differences that are left:

* A deletion does not wait for a task of its server that runs; that task sees
  it later. The guest of a server that is deleted while its compute service is
  down ends with it, though Nova would look for it afterwards.
* Refusals that depend on volumes, ports, devices and hypervisors are none, nor
  is one for a compute service that is down.
* A failed task of the compute service sets no fault, and makes no ERROR but
  at a boot or a hard reboot. A move is tried on one host alone.
* Where Nova cannot move allocations back, it goes on without; here it tries
  five times.
* Statuses of a migration are preparing, finished, completed, confirmed,
  reverting, reverted and error.
* There is no soft deletion, rescue, rebuild, evacuation or cross-cell resize,
  and shelved servers are offloaded at once.
"""

import datetime
import types
import uuid as uuids

from novaclient import exceptions as nova_exc
from oslo_utils import timeutils

from tests.exploration import nova_moves
from tests.exploration import nova_servers
from tests.exploration import nova_states
from tests.exploration import requests

#: Where a server can be shelved, and the like.
SHELVABLE = ('active', 'stopped', 'paused', 'suspended')


class MemoryNova(nova_moves.Moves, nova_states.States):
    """Nova without its scheduler, in memory.

    :param loop: a tasks.Loop
    :param process: the tasks.Process of what takes time here
    :param placement: has call(method, url, body), for Nova's own use
    :param schedule: given a Server or several and the operation, returns the
        names of their hosts, or raises NoValidHost or MessagingTimeout
    :ivar servers: {uuid: Server}, deleted ones too
    :ivar hosts: {name: Host}
    """

    def __init__(self, loop, process, placement, schedule):
        self.loop = loop
        self.process = process
        self.placement = placement
        self.schedule = schedule
        self.servers = {}
        self.hosts = {}
        self.migrations = {}
        #: (server, host) where a failed migration has left an allocation.
        self.leaks = set()
        #: Draws how long something takes, in seconds.
        self.duration_s = lambda what: loop.rng.uniform(0.2, 4)
        #: Draws whether something fails.
        self.fails = lambda what: False
        #: Until when no image of a server can be made.
        self.images_fail_until_s = 0

    def now(self):
        return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)

    def _save(self, server, **values):
        for name, value in values.items():
            setattr(server, name, value)
        if values.get('vm_state', 'stopped') != 'stopped':
            server.is_left_off = False
        server.updated_at = self.now()
        self.loop.tell('nova', server.uuid[:8], values)

    def _start(self, name, server, function, *args):
        return self.loop.start(
            self.process, f'nova/{name} {server.uuid[:8]}',
            lambda: function(server, *args))

    def _take(self, what):
        self.loop.sleep(self.duration_s(what))

    # -- boots -----------------------------------------------------------

    def boot(self, *args, **kwargs):
        """Create servers like POST /servers; return the Servers."""
        servers = self.request(*args, **kwargs)
        self.build(servers)
        return servers

    def request(self, flavor, project_id, count=1, hints=None, tags=(),
                user_id='user'):
        """Write the build request, before scheduling."""
        servers = []
        for _ in range(count):
            server = nova_servers.Server(
                str(uuids.uuid4()), project_id, user_id, flavor, self.now())
            server.spec = requests.make(server, count)
            # As Nova's RequestSpec.from_components() has them.
            server.spec.scheduler_hints = {
                key: value if isinstance(value, list) else [value]
                for key, value in (hints or {}).items()}
            server.tags = tuple(
                types.SimpleNamespace(tag=tag) for tag in tags)
            self.servers[server.uuid] = server
            servers.append(server)
        self.loop.tell('user boots', flavor.name, project_id,
                       *(server.uuid[:8] for server in servers))
        return servers

    def withdraw(self, servers):
        """Delete servers of a request that has failed before it was cast.

        Nova does so even if its caller dies meanwhile.
        """
        def delete(_first):
            for server in servers:
                self.loop.switch()
                server.is_requested = server.is_mapped = False
                self._gone(server)

        self.loop.join(self._start('api', servers[0], delete))

    def build(self, servers):
        """Cast a request to the conductor."""
        self._start('conductor', servers[0],
                    lambda _server: self._build(servers))

    def _build(self, servers):
        try:
            hosts = self.schedule(servers, 'create')
        except nova_servers.FAILURES as exc:
            for server in servers:
                self._bury(server, exc)
            return
        for server, host in zip(servers, hosts, strict=True):
            self.loop.switch()
            if not server.is_requested:
                # The user has deleted it meanwhile.
                server.is_mapped = False
                self.free(server.uuid)
                continue
            found = self.hosts[host]
            self._save(server, cell=found.cell, is_requested=False)
            self._start('compute', server, self._spawn, found)

    def _bury(self, server, exc):
        if not server.is_requested:
            server.cell = 'cell0'
            return
        self._save(server, vm_state='error', task_state=None, cell='cell0',
                   is_requested=False)
        self.loop.tell('nova buries', server.uuid[:8], type(exc).__name__,
                       exc)
        self.loop.switch()
        server.fault = (exc.format_message() if hasattr(exc, 'format_message')
                        else type(exc).__name__)

    def _spawn(self, server, host):
        self._take('cast')
        if server.deleted:
            self.free(server.uuid)
            return
        while not host.runs:
            self._take('cast')
            if server.deleted:
                return
        self._save(server, host=host.name, node=host.name, guest=host.name,
                   task_state='spawning')
        self._take('spawn')
        if server.deleted or server.task_state != 'spawning':
            return
        if self.fails('spawn'):
            self._save(server, vm_state='error', task_state=None, host=None,
                       node=None, guest='')
            self.free(server.uuid)
            server.fault = ('Exceeded maximum number of retries. Exhausted '
                            'all hosts available for retrying.')
            return
        self._save(server, vm_state='active', task_state=None,
                   launched_at=self.now())

    # -- allocations, by Nova --------------------------------------------

    def _empty(self, consumer):
        """Free a move's allocations, unless they have changed."""
        held = self.placement('get', f'/allocations/{consumer}').json()
        if held['allocations']:
            self.placement('put', f'/allocations/{consumer}', {
                **held, 'allocations': {}})

    def free(self, consumer):
        """Delete the allocations of a consumer."""
        while True:
            if self.placement('delete', f'/allocations/{consumer}'
                              ).status_code in (204, 404):
                return
            self._take('retry')

    def _move_allocations(self, source, target, server):
        """Move allocations like Nova's report client; return success."""
        held = self.placement('get', f'/allocations/{source}').json()
        there = self.placement('get', f'/allocations/{target}').json()
        if not held['allocations']:
            return bool(there['allocations'])
        body = {
            source: {'allocations': {}, 'project_id': server.project_id,
                     'user_id': server.user_id,
                     'consumer_generation': held['consumer_generation']},
            target: {'allocations': {
                uuid: {'resources': item['resources']}
                for uuid, item in held['allocations'].items()},
                'project_id': server.project_id, 'user_id': server.user_id,
                'consumer_generation': there.get('consumer_generation')}}
        return self.placement('post', '/allocations', body
                              ).status_code == 204

    # -- what may be asked of a server -----------------------------------

    def find(self, uuid):
        """The Server.

        :raises NotFound: as Nova's API answers
        """
        server = self.servers.get(uuid)
        if server is None or server.deleted or (
                server.cell is None and not server.is_requested):
            raise nova_exc.NotFound(404)
        return server

    def check(self, server, vm_states, task_states=(None,), is_admin=True):
        """Refuse an action that the state or a lock forbids.

        :raises Conflict: as Nova's API answers
        """
        if server.locked and not is_admin:
            raise nova_exc.Conflict(409, 'it is locked')
        if server.vm_state not in vm_states or not server.launched_at or (
                task_states is not None
                and server.task_state not in task_states):
            raise nova_exc.Conflict(
                409, f'{server.vm_state}, {server.task_state}')

    def act(self, uuid, action, is_admin=True, by=None, **arguments):
        """Begin an action of the API and return at once.

        :param by: the project that is recorded, None for that of such a user
        """
        server = self.find(uuid)
        self.loop.tell('api', action, uuid[:8], 'admin' if is_admin else '')
        act = getattr(self, f'act_{action}')
        if act(server, is_admin, **arguments) is not False:
            self._record(server, action,
                         by or ('admin' if is_admin else server.project_id))

    @staticmethod
    def _record(server, action, project_id):
        server.actions.insert(0, nova_servers.Action(action, project_id))

    def act_delete(self, server, is_admin, force=False):
        if server.locked and not is_admin:
            raise nova_exc.Conflict(409, 'it is locked')
        if server.host is None:
            # The API does that itself: no compute service has it.
            server.is_requested = False
            self._gone(server)
            self._start('delete', server, self._clean_up)
            return
        self._save(server, task_state='deleting')
        if self.hosts[server.host].is_up:
            server.is_marked_deleted = True
            self._start('delete', server, self._delete)
        else:
            self._start('delete', server, self._delete_here)

    act_force_delete = act_delete

    def _gone(self, server):
        self._save(server, deleted=True, vm_state='deleted', task_state=None,
                   deleted_at=self.now(), terminated_at=self.now())

    def _clean_up(self, server):
        self.free(server.uuid)
        server.is_marked_deleted = True

    def _delete_here(self, server):
        self._clean_up(server)
        if not server.deleted:
            server.guest = ''
            self._gone(server)

    def _delete(self, server):
        self._until_up(server)
        self._take('delete')
        if server.deleted:
            return
        server.guest = ''
        self._gone(server)
        for migration in self.migrations.values():
            if migration.server == server.uuid:
                self.free(migration.uuid)
        self.loop.switch()
        self.free(server.uuid)

    def act_shelve(self, server, is_admin):
        self.check(server, SHELVABLE, is_admin=is_admin)
        self._save(server, task_state='shelving')
        self._start('shelve', server, self._shelve)

    def _still(self, server, task_state):
        return not server.deleted and server.task_state == task_state

    def _shelve(self, server):
        self._until_up(server)
        self._take('shelve')
        if not self._still(server, 'shelving'):
            return
        if self.fails('shelve') or self.loop.now_s < self.images_fail_until_s:
            self._note_error(server, 'shelve')
            if server.vm_state in ('active', 'paused'):
                server.is_left_off = True
                self._start('power state', server, self._synchronize)
            self._save(server, task_state=None)
            return
        self._save(server, task_state='shelving_image_uploading')
        self._take('upload')
        if self._still(server, 'shelving_image_uploading'):
            self._save(server, vm_state='shelved',
                       task_state='shelving_offloading')
            self._offload(server)

    def act_shelve_offload(self, server, is_admin):
        self.check(server, ('shelved',), is_admin=is_admin)
        self._save(server, task_state='shelving_offloading')
        self._start('offload', server, self._offload)

    def _offload(self, server):
        self._take('offload')
        if not self._still(server, 'shelving_offloading'):
            return
        server.guest = ''
        self.free(server.uuid)
        if self._still(server, 'shelving_offloading'):
            self._save(server, vm_state='shelved_offloaded', task_state=None,
                       host=None, node=None)

    def act_unshelve(self, server, is_admin):
        self.check(server, ('shelved', 'shelved_offloaded'),
                   is_admin=is_admin)
        self._save(server, task_state='unshelving')
        self._start('unshelve', server, self._unshelve)

    def _unshelve(self, server):
        if server.vm_state == 'shelved':
            self._take('unshelve')
            if self._still(server, 'unshelving'):
                self._save(server, vm_state='active', task_state=None)
            return
        try:
            host, = self.schedule([server], 'unshelve')
        except nova_servers.FAILURES:
            if self._still(server, 'unshelving'):
                self._save(server, task_state=None)
            return
        if not self._still(server, 'unshelving'):
            self.free(server.uuid)
            return
        self._take('cast')
        self._until_runs(host)
        if not self._still(server, 'unshelving'):
            self.free(server.uuid)
            return
        self._save(server, host=host, node=host, guest=host,
                   task_state='spawning')
        self._take('spawn')
        if not self._still(server, 'spawning'):
            return
        if self.fails('spawn'):
            server.guest = ''
            self.free(server.uuid)
            self._save(server, task_state=None, host=None, node=None)
            return
        self._save(server, vm_state='active', task_state=None,
                   launched_at=self.now())

    # -- answers to nova_preempt -----------------------------------------

    def operation_of(self, server):
        return {'unshelving': 'unshelve', 'migrating': 'live_migrate',
                'resize_prep': 'resize'}.get(server.task_state, 'create')

