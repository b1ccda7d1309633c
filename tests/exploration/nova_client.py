# SPDX-License-Identifier: Apache-2.0
"""The novaclient of a process, as far as nova_preempt.cloud.nova_api calls."""

import dataclasses
import json
import types

from novaclient import exceptions as nova_exc

from nova_preempt.advice import recommender
from nova_preempt.cloud import nova_api

#: {method of novaclient's servers: action of the MemoryNova}
_ACTIONS = {
    'force_delete': 'force_delete', 'delete': 'delete', 'shelve': 'shelve',
    'shelve_offload': 'shelve_offload', 'unshelve': 'unshelve',
    'stop': 'stop', 'start': 'start', 'unpause': 'unpause',
    'reboot': 'reboot', 'unlock': 'unlock', 'pause': 'pause',
    'confirm_resize': 'confirm_resize', 'revert_resize': 'revert_resize',
    'live_migrate': 'live_migrate', 'migrate': 'migrate'}

_STATUS = {'active': 'ACTIVE', 'building': 'BUILD', 'stopped': 'SHUTOFF',
           'error': 'ERROR', 'paused': 'PAUSED', 'shelved': 'SHELVED',
           'shelved_offloaded': 'SHELVED_OFFLOADED',
           'resized': 'VERIFY_RESIZE'}

#: The project of the service user.
SERVICE = 'service'

#: Those that end a server, or move it.
_ENDS = ('force_delete', 'delete', 'shelve', 'shelve_offload', 'stop',
         'live_migrate')

_WITH_METADATA = ('active', 'paused', 'suspended', 'stopped')


class Client:
    """novaclient's Client.

    :param world: a world.World, whose call() is the seam
    :param is_admin: False for the owner of all servers
    """

    def __init__(self, world, is_admin=True):
        self._world = world
        self.servers = Servers(world, is_admin)
        self.instance_action = types.SimpleNamespace(list=self._actions)
        self.server_migrations = types.SimpleNamespace(
            list=lambda uuid: [], live_migration_abort=lambda uuid, move: None)
        self.services = types.SimpleNamespace(
            disable_log_reason=self._disable, enable=self._enable,
            list=lambda binary=None: self._list(self._service))
        self.hypervisors = types.SimpleNamespace(list=lambda detailed, marker:
            [] if marker else self._list(self._hypervisor))
        self.aggregates = types.SimpleNamespace(list=list)

    def _actions(self, uuid):
        def read():
            return [dataclasses.replace(each) for each
                    in self._world.nova.find(uuid).actions]
        return self._world.call('nova', f'actions {uuid[:8]}', read)

    def _host(self, uuid):
        return next(host for host in self._world.nova.hosts.values()
                    if host.uuid == uuid)

    def _disable(self, uuid, reason):
        def write():
            host = self._host(uuid)
            host.disabled, host.disabled_reason = True, reason
        self._world.call('nova', f'disable {self._host(uuid).name}', write)

    def _enable(self, uuid):
        def write():
            host = self._host(uuid)
            host.disabled, host.disabled_reason = False, None
        self._world.call('nova', f'enable {self._host(uuid).name}', write)

    def _list(self, make):
        def read():
            return [types.SimpleNamespace(to_dict=lambda found=found: found)
                    for found in map(make, self._world.nova.hosts.values())]
        return self._world.call('nova', 'list', read)

    def _service(self, host):
        return {'id': host.uuid, 'binary': 'nova-compute', 'host': host.name,
                'zone': 'nova', 'state': 'up' if host.is_up else 'down',
                'status': 'disabled' if host.disabled else 'enabled',
                'disabled_reason': host.disabled_reason,
                'forced_down': host.forced_down,
                'updated_at': self._world.nova.now().isoformat()}

    def _hypervisor(self, host):
        guests = [server for server in self._world.nova.servers.values()
                  if server.guest == host.name]
        return {'id': host.uuid, 'hypervisor_hostname': host.name,
                'hypervisor_type': 'fake', 'hypervisor_version': 1,
                'service': {'host': host.name, 'id': host.uuid,
                            'disabled_reason': host.disabled_reason},
                'state': 'up' if host.is_up else 'down',
                'status': 'disabled' if host.disabled else 'enabled',
                'vcpus': host.amounts['VCPU'],
                'memory_mb': host.amounts['MEMORY_MB'],
                'local_gb': host.amounts['DISK_GB'], 'cpu_info': {},
                'vcpus_used': sum(each.flavor.vcpus for each in guests),
                'running_vms': len(guests)}


class Servers:
    """novaclient's servers."""

    def __init__(self, world, is_admin):
        self._world = world
        self._is_admin = is_admin

    def __getattr__(self, name):
        if name not in _ACTIONS:
            raise AttributeError(name)

        def act(uuid, *args, **kwargs):
            if name in _ENDS:
                self._world.watcher.act(name, uuid)
            return self._world.call(
                'nova', f'{name} {uuid[:8]}',
                lambda: self._act(uuid, _ACTIONS[name]))
        return act

    def _act(self, uuid, action, **arguments):
        return self._world.nova.act(
            uuid, action, self._is_admin,
            by=SERVICE if self._is_admin else None, **arguments)

    def lock(self, uuid, reason=None):
        return self._world.call(
            'nova', f'lock {uuid[:8]}',
            lambda: self._act(uuid, 'lock', reason=reason))

    def resize(self, uuid, flavor):
        return self._world.call(
            'nova', f'resize {uuid[:8]}',
            lambda: self._act(uuid, 'resize', flavor=flavor))

    def set_meta(self, uuid, metadata):
        def write():
            self._metadata(uuid).update(metadata)
            arrived.append(self._world.loop.now_s)
            if is_recommendation:
                self._world.recommendations.changed(uuid)
            return metadata

        arrived, is_recommendation = [], recommender.KEY in metadata
        if is_recommendation:
            return self._world.call('nova', f'recommend {uuid[:8]}', write)
        # Late, it would stay after its withdrawal: that is not explored.
        try:
            return self._world.call('nova', f'set_meta {uuid[:8]}', write,
                                    once=True)
        finally:
            # Where it does not arrive, the eviction goes on from now.
            if nova_api.NOTICE_KEY in metadata:
                self._world.watcher.notice(
                    uuid, arrived[0] if arrived else self._world.loop.now_s,
                    json.loads(metadata[nova_api.NOTICE_KEY])['preemption_id'])

    def delete_meta(self, uuid, keys):
        def write():
            # Nova looks for the key before it looks at the state.
            metadata = self._world.nova.find(uuid).metadata
            for key in keys:
                if key not in metadata:
                    raise nova_exc.NotFound(404)
                del self._metadata(uuid)[key]
            if is_recommendation:
                self._world.recommendations.changed(uuid)

        is_recommendation = recommender.KEY in keys
        return self._world.call('nova', (
            'withdraw' if is_recommendation else 'delete_meta')
            + f' {uuid[:8]}', write)

    def _metadata(self, uuid):
        """The metadata of a server, if it may be changed now."""
        server = self._world.nova.find(uuid)
        self._world.nova.check(server, _WITH_METADATA, None, self._is_admin)
        return server.metadata

    def get(self, uuid):
        def read():
            server = self._world.nova.find(uuid)
            return types.SimpleNamespace(**{
                'id': server.uuid, 'tenant_id': server.project_id,
                'status': _STATUS.get(server.vm_state, 'UNKNOWN'),
                'locked': server.locked,
                'locked_reason': server.locked_reason,
                'metadata': dict(server.metadata),
                'OS-EXT-STS:vm_state': server.vm_state,
                'OS-EXT-STS:task_state': server.task_state,
                'OS-EXT-SRV-ATTR:host': server.host,
                'OS-SRV-USG:launched_at': server.launched_at
                and server.launched_at.isoformat()})
        return self._world.call('nova', f'get {uuid[:8]}', read)
