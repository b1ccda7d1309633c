# SPDX-License-Identifier: Apache-2.0
"""A law of progress: once no call fails, a request that fits is served.

At the end of an exploration preemptible servers fill the free capacity of the
cloud in one burst. Then a few normal servers are booted. Each must be served
if it fits on a host beside the servers that may not be evicted.

The law is silent where a request may be refused although it fits: see
UNSURE_OPTIONS.
"""

from nova_preempt.core.reservation import reservation_model
from tests.exploration import operations

#: Options with which a request may be refused although it fits.
UNSURE_OPTIONS = ('project_budget', 'headroom', 'maximum_runtime_s',
                  'max_waiting_requests')
#: Options that may give victims less time than they take.
TIMEOUTS = ('termination_timeout_s', 'migrate_timeout_s')
#: How long a request may take, in virtual seconds.
PATIENCE_S = 300
#: After how long each scheduler knows a change of the reservations.
_KNOWN_S = 15
_BY_NAME = {flavor.name: flavor for flavor in operations.FLAVORS}
_SPOT = _BY_NAME['spot']
_ASKED = ('normal', 'small', 'normal')


def find_breach(world):
    """Return what says that a request which fits was refused, '' if none."""
    if not _is_sure(world):
        return ''
    _fill(world)
    for name in _ASKED:
        flavor = _BY_NAME[name]
        if not all(_fit(world, flavor) for _ in _looks(world)):
            continue
        server, = world.nova.boot(flavor, 'p1')
        _wait(world, [server])
        # Nova records the fault a moment after the state.
        world.loop.run(world.loop.now_s + 1)
        if server.vm_state != 'active' and not _waited_in_vain(world, server):
            return (f'server {server.uuid} of flavor {name} fits, and is '
                    f'{server.vm_state}: {server.fault}')
    return ''


def _looks(world):
    """Yield at times at which a server must fit, the last one now.

    Schedulers know that a reservation has ended a few seconds later.
    """
    yield
    if ('reservation', 'enabled') in world.settings:
        world.loop.run(world.loop.now_s + _KNOWN_S)
        yield


def _fit(world, flavor):
    return any(_fits(world, host, flavor)
               for host in world.nova.hosts.values())


def _is_sure(world):
    settings = world.settings
    return not any(
        option in UNSURE_OPTIONS for _group, option in settings) and not any(
        each.process.skew_s for each in (*world.schedulers, *world.engines))


def _waited_in_vain(world, server):
    """Return whether the victims of a server may have taken too long."""
    return any(option in TIMEOUTS for _group, option in world.settings) and (
        world.watcher.has_decision(server.uuid))


def _fill(world):
    """Boot preemptible servers on all that is free, all at once."""
    number = sum(_free(world, host)['VCPU']
                 for host in world.nova.hosts.values()
                 if _is_usable(world, host))
    servers = [world.nova.boot(_SPOT, 'p2')[0] for _ in range(number)]
    _wait(world, servers)
    world.loop.run(world.loop.now_s + world.settings.get(
        ('preemption', 'minimum_runtime_s'), 0))


def _wait(world, servers):
    world.loop.run(world.loop.now_s + PATIENCE_S, lambda: all(
        each.vm_state != 'building' and each.task_state is None
        for each in servers))


def _free(world, host):
    return world.placement.providers[host.uuid].free()


def _is_usable(world, host):
    """Return whether anybody may use a host; a reserved one may be soon."""
    return host.is_up and host.runs and not host.disabled and not any(
        host.name in each.held for each in world.watcher.reservations()
        if each.status in reservation_model.OPEN)


def _fits(world, host, flavor):
    """Return whether a server fits, if all that may be evicted are."""
    if not _is_usable(world, host):
        return False
    evicted = {each.uuid for each in world.nova.servers.values()
               if each.host == host.name and _may_end(each)}
    # No scheduler evicts again at once whom it could not evict.
    evicted = evicted.difference(*(
        each.parts.handover.stuck() for each in world.schedulers
        if each.parts))
    free = world.placement.providers[host.uuid].free(evicted)
    if world.settings.get(('preemption', 'actions'), ['delete'])[0] == 'stop':
        # A stopped server keeps its disk.
        free['DISK_GB'] = _free(world, host)['DISK_GB']
    return all(free[name] >= amount for name, amount in {
        'VCPU': flavor.vcpus, 'MEMORY_MB': flavor.memory_mb,
        'DISK_GB': flavor.root_gb}.items())


def _may_end(server):
    return (server.flavor is _SPOT and server.vm_state == 'active'
            and server.task_state is None and not server.locked
            and not server.deleted)
