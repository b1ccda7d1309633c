# SPDX-License-Identifier: Apache-2.0
"""Batches for tests."""

import itertools

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice

NAMES = ('VCPU', 'MEMORY_MB', 'DISK_GB')


def request(number, *demand, **more):
    """The request that comes at this place in the order."""
    resources = dict(zip(NAMES, demand, strict=False))
    more.setdefault('order', number)
    for name in ('hosts', 'traits', 'forbidden'):
        if more.get(name) is not None:
            more[name] = frozenset(more[name])
    more['apart'] = tuple(map(batch_model.AntiAffinity, more.get('apart', ())))
    return batch_model.Request(f'r{number}', resources=resources, **more)


def host(name, *free, capacity=None, **more):
    return batch_model.HostState(
        name, dict(zip(NAMES, free, strict=False)),
        dict(zip(NAMES, capacity or free, strict=False)),
        traits=frozenset(more.pop('traits', ())), **more)


def place(requests, hosts, monotonic=None, **options):
    """Place a batch, exactly by default."""
    options.setdefault('gap', 0)
    options.setdefault('time_limit_s', 60)
    return solver_choice.make(batch_model.Options(**options), monotonic).place(
        requests, hosts)


def where(result):
    """Return {uuid: host} of placed requests."""
    return {uuid: next(iter(hosts)) for uuid, hosts in result.placed.items()}


def used(requests, result):
    """{(host, resource class): amount}."""
    demands = {each.uuid: each.resources for each in requests}
    found = {}
    for uuid, hosts in result.placed.items():
        for name, count in hosts.items():
            for item, amount in demands[uuid].items():
                key = name, item
                found[key] = found.get(key, 0) + amount * count
    return found


def fits_where(requests, hosts, result):
    """Return {uuid: hosts that still have capacity for it}."""
    taken = used(requests, result)
    return {
        each.uuid: [
            host.name for host in hosts
            if all(not amount or amount <= host.free.get(item, 0)
                   - taken.get((host.name, item), 0)
                   for item, amount in each.resources.items()
                   ) and (each.hosts is None or host.name in each.hosts)]
        for each in requests}


def all_placements(requests, hosts):
    """Yield each way to place requests of one server, {uuid: host or None}."""
    for chosen in itertools.product([None, *hosts], repeat=len(requests)):
        left = {host.name: dict(host.free) for host in hosts}
        for each, at in zip(requests, chosen, strict=True):
            if at is None:
                continue
            if each.hosts is not None and at.name not in each.hosts:
                break
            # Of what it does not ask for there may be too little.
            asked = {item: amount for item, amount
                     in each.resources.items() if amount}
            for item, amount in asked.items():
                left[at.name][item] = left[at.name].get(item, 0) - amount
            if any(left[at.name][item] < 0 for item in asked):
                break
        else:
            yield {each.uuid: at.name if at else None
                   for each, at in zip(requests, chosen, strict=True)}
