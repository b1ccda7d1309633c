# SPDX-License-Identifier: Apache-2.0
"""Nova in memory: servers, what its API lets users do, and what follows.

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
  at a boot. A move is tried on one host alone.
* Where Nova cannot move allocations back, it goes on without; here it tries
  five times.
* Statuses of a migration are preparing, finished, completed, confirmed,
  reverting, reverted and error.
* There is no soft deletion, rescue, rebuild, evacuation or cross-cell resize,
  and shelved servers are offloaded at once.
"""

import dataclasses
import datetime
import uuid as uuids

from keystoneauth1 import exceptions as ks_exc
from nova import exception
from novaclient import exceptions as nova_exc
from oslo_db import exception as db_exc
import oslo_messaging as messaging
from oslo_utils import timeutils

from tests.exploration import requests

#: What the conductor may be answered instead of hosts.
FAILURES = (exception.NovaException, messaging.MessagingTimeout,
            db_exc.DBError, ks_exc.ClientException)

#: Where a server can be shelved, and the like.
SHELVABLE = ('active', 'stopped', 'paused', 'suspended')


class _Loaded:
    """Tells, as Nova's objects do, which attributes are loaded."""

    def __contains__(self, name):
        return hasattr(self, name)

    def obj_attr_is_set(self, name):
        return hasattr(self, name)


@dataclasses.dataclass(eq=False)
class Server(_Loaded):
    """A server; the attributes are those of nova.objects.Instance.

    :ivar is_preemptible: whether its flavor says so
    :ivar guest: the host on which it uses space, '' for none
    :ivar cell: the name of its cell, None while it is a build request
    :ivar is_mapped: whether it has an instance mapping
    """

    uuid: str
    project_id: str
    user_id: str
    flavor: object
    created_at: datetime.datetime
    vm_state: str = 'building'
    task_state: str | None = 'scheduling'
    host: str | None = None
    node: str | None = None
    cell: str | None = None
    updated_at: datetime.datetime | None = None
    launched_at: datetime.datetime | None = None
    terminated_at: datetime.datetime | None = None
    deleted_at: datetime.datetime | None = None
    deleted: bool = False
    locked: bool = False
    locked_by: str | None = None
    locked_reason: str | None = None
    metadata: dict = dataclasses.field(default_factory=dict)
    hidden: bool = False
    image_ref: str = 'image'
    numa_topology: object = None
    pci_requests: object = None
    resources: object = None
    tags: tuple = ()
    guest: str = ''
    is_requested: bool = True
    is_mapped: bool = True
    is_marked_deleted: bool = False
    actions: list = dataclasses.field(default_factory=list)
    spec: object = None
    old_flavor: object = None
    old_vm_state: str = 'active'

    @property
    def is_preemptible(self):
        return self.flavor.extra_specs.get('preemptible:enabled') == 'true'

    @property
    def amounts(self):
        return requests.amounts(self.flavor)


@dataclasses.dataclass(eq=False)
class Host:
    """A host, its node, and its compute service."""

    uuid: str
    name: str
    cell: str
    amounts: dict
    is_up: bool = True
    disabled: bool = False
    disabled_reason: str = ''


@dataclasses.dataclass
class Migration:
    uuid: str
    server: str
    source: str
    target: str = ''
    status: str = 'preparing'


class MemoryNova:
    """All of Nova but its scheduler.

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
        #: Draws how long something takes, in seconds.
        self.duration_s = lambda what: loop.rng.uniform(0.2, 4)
        #: Draws whether something fails.
        self.fails = lambda what: False

    def now(self):
        return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)

    def _save(self, server, **values):
        for name, value in values.items():
            setattr(server, name, value)
        server.updated_at = self.now()
        self.loop.tell('nova', server.uuid[:8], values)

    def _start(self, name, server, function, *args):
        self.loop.start(self.process, f'nova/{name} {server.uuid[:8]}',
                        lambda: function(server, *args))

    def _take(self, what):
        self.loop.sleep(self.duration_s(what))

    # -- boots -----------------------------------------------------------

    def boot(self, flavor, project_id, count=1, hints=None):
        """What POST /servers does; returns the Servers."""
        servers = []
        for _ in range(count):
            server = Server(str(uuids.uuid4()), project_id, 'user', flavor,
                            self.now())
            server.spec = requests.make(server, count)
            server.spec.scheduler_hints = hints or {}
            self.servers[server.uuid] = server
            servers.append(server)
        self.loop.tell('user boots', flavor.name, project_id,
                       *(server.uuid[:8] for server in servers))
        self._start('conductor', servers[0],
                    lambda _server: self._build(servers))
        return servers

    def _build(self, servers):
        try:
            hosts = self.schedule(servers, 'create')
        except FAILURES as exc:
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

    def _spawn(self, server, host):
        self._take('cast')
        if server.deleted:
            self.free(server.uuid)
            return
        while not host.is_up:
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
            return
        self._save(server, vm_state='active', task_state=None,
                   launched_at=self.now())

    # -- allocations, by Nova --------------------------------------------

    def _empty(self, consumer):
        """Free what a move has held, unless somebody changes it."""
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
        """As Nova's report client does; whether that was done."""
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
        """Refuse what its state, or a lock, forbids.

        :raises Conflict: as Nova's API answers
        """
        if server.locked and not is_admin:
            raise nova_exc.Conflict(409, 'it is locked')
        if server.vm_state not in vm_states or not server.launched_at or (
                task_states is not None
                and server.task_state not in task_states):
            raise nova_exc.Conflict(
                409, f'{server.vm_state}, {server.task_state}')

    def act(self, uuid, action, is_admin=True, **arguments):
        """Do what the API is asked for; returns at once, as it does."""
        server = self.find(uuid)
        self.loop.tell('api', action, uuid[:8], 'admin' if is_admin else '')
        act = getattr(self, f'act_{action}')
        if act(server, is_admin, **arguments) is not False:
            server.actions.insert(0, (
                action, 'admin' if is_admin else server.project_id))

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

    def _until_up(self, server):
        while server.host and not self.hosts[server.host].is_up:
            self._take('cast')

    def _shelve(self, server):
        self._until_up(server)
        self._take('shelve')
        if not self._still(server, 'shelving'):
            return
        if self.fails('shelve'):
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
        except FAILURES:
            if self._still(server, 'unshelving'):
                self._save(server, task_state=None)
            return
        if not self._still(server, 'unshelving'):
            self.free(server.uuid)
            return
        self._take('cast')
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

    def act_stop(self, server, is_admin):
        self._check_built(server)
        self.check(server, ('active', 'error'), is_admin=is_admin)
        self._simple(server, 'powering-off', 'stopped')

    def act_start(self, server, is_admin):
        self._check_built(server)
        self.check(server, ('stopped',), is_admin=is_admin)
        self._simple(server, 'powering-on', 'active')

    @staticmethod
    def _check_built(server):
        if server.cell is None:
            raise nova_exc.NotFound(404)

    def act_pause(self, server, is_admin):
        self.check(server, ('active',), is_admin=is_admin)
        self._simple(server, 'pausing', 'paused')

    def act_unpause(self, server, is_admin):
        self.check(server, ('paused',), is_admin=is_admin)
        self._simple(server, 'unpausing', 'active')

    def _simple(self, server, task_state, vm_state):
        if server.host is None:
            raise nova_exc.Conflict(409, 'it is not ready')
        self._save(server, task_state=task_state)

        def run(server):
            self._until_up(server)
            self._take(task_state)
            if self._still(server, task_state):
                self._save(server, task_state=None, **(
                    {} if self.fails(task_state) else {'vm_state': vm_state}))

        self._start(task_state, server, run)

    def act_lock(self, server, is_admin, reason=None):
        if server.locked and not is_admin:
            return False          # it changes nothing, and is not recorded
        self._save(server, locked=True,
                   locked_by='admin' if is_admin else 'owner',
                   locked_reason=reason or server.locked_reason)
        return True

    def act_unlock(self, server, is_admin):
        if server.locked_by == 'admin' and not is_admin:
            raise nova_exc.Forbidden(403, 'an administrator has locked it')
        self._save(server, locked=False, locked_by=None, locked_reason=None)

    # -- moves -----------------------------------------------------------

    def act_live_migrate(self, server, is_admin):
        self.check(server, ('active', 'paused'), is_admin=is_admin)
        self._save(server, task_state='migrating')
        self._start('live migration', server, self._live_migrate)

    def _live_migrate(self, server):
        move = self._begin_move(server, 'live_migrate', 'migrating')
        if move is None:
            return
        self._take('live migration')
        if not self._still(server, 'migrating') or self.fails('migration'):
            self._end_move(server, move, back=True)
            return
        source = server.guest
        move.status = 'completed'
        self._save(server, host=move.target, node=move.target,
                   guest=move.target, task_state=None)
        self.loop.tell('nova moved', server.uuid[:8], source, move.target)
        self._empty(move.uuid)

    def _begin_move(self, server, operation, task_state):
        move = Migration(str(uuids.uuid4()), server.uuid, server.host)
        self.migrations[move.uuid] = move
        if not self._move_allocations(server.uuid, move.uuid, server):
            move.status = 'error'
            self._save(server, task_state=None)
            return None
        try:
            move.target, = self.schedule([server], operation)
        except FAILURES:
            self._end_move(server, move, back=True)
            return None
        return move

    def _end_move(self, server, move, back):
        """Take a move back: the server has its old allocations again."""
        move.status = 'error'
        if server.deleted:
            self.free(move.uuid)
            self.free(server.uuid)
            return
        self._give_back(server, move)
        if not server.deleted and server.task_state in (
                'migrating', 'resize_prep', 'resize_migrating'):
            self._save(server, task_state=None)

    def _give_back(self, server, move):
        """Replace the allocations of the server by those of the migration."""
        for _ in range(5):
            if self._move_allocations(move.uuid, server.uuid, server):
                break
            self._take('retry')

    def act_resize(self, server, is_admin, flavor=None):
        self.check(server, ('active', 'stopped'), is_admin=is_admin)
        self._save(server, task_state='resize_prep')
        self._start('resize', server, self._resize, flavor or server.flavor)

    def act_migrate(self, server, is_admin):
        self.act_resize(server, is_admin)

    def _resize(self, server, flavor):
        old = server.flavor
        server.spec = requests.make(server, 1, flavor)
        operation = 'cold_migrate' if flavor is old else 'resize'
        move = self._begin_move(server, operation, 'resize_prep')
        if move is None:
            return
        if not self._still(server, 'resize_prep'):
            self._end_move(server, move, back=True)
            return
        self._save(server, task_state='resize_migrating')
        self._take('resize')
        if not self._still(server, 'resize_migrating') or (
                self.fails('migration')):
            self._end_move(server, move, back=True)
            return
        move.status = 'finished'
        self._save(server, host=move.target, node=move.target,
                   guest=move.target, flavor=flavor, old_flavor=old,
                   old_vm_state=server.vm_state, vm_state='resized',
                   task_state=None)

    def _move_of(self, server):
        return next((move for move in self.migrations.values()
                     if move.server == server.uuid
                     and move.status == 'finished'), None)

    def act_confirm_resize(self, server, is_admin):
        self.check(server, ('resized',), is_admin=is_admin)
        move = self._move_of(server)
        move.status = 'confirmed'
        self._start('confirm', server, self._confirm, move)

    def _confirm(self, server, move):
        self._take('confirm')
        self._empty(move.uuid)
        if not server.deleted and server.vm_state == 'resized':
            self._save(server, vm_state=server.old_vm_state, old_flavor=None)

    def act_revert_resize(self, server, is_admin):
        self.check(server, ('resized',), is_admin=is_admin)
        move = self._move_of(server)
        move.status = 'reverting'
        self._save(server, task_state='resize_reverting')
        self._start('revert', server, self._revert, move)

    def _revert(self, server, move):
        self._take('revert')
        if not self._still(server, 'resize_reverting'):
            self.free(move.uuid)
            return
        self._save(server, host=move.source, node=move.source,
                   guest=move.source, flavor=server.old_flavor,
                   old_flavor=None)
        self._give_back(server, move)
        move.status = 'reverted'
        if self._still(server, 'resize_reverting'):
            self._save(server, vm_state=server.old_vm_state, task_state=None)

    # -- answers to nova_preempt -----------------------------------------

    def operation_of(self, server):
        return {'unshelving': 'unshelve', 'migrating': 'live_migrate',
                'resize_prep': 'resize'}.get(server.task_state, 'create')

