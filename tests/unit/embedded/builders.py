# SPDX-License-Identifier: Apache-2.0
"""Hosts, servers and outcomes for the tests here."""

import collections

from nova_preempt.embedded import scenario as scenarios

#: As nova_preempt.embedded.scenario_player has them, which would load all of
#Nova.
Server = collections.namedtuple(
    'Server', 'uuid name flavor preemptible uptime_us resources cost_us')
Host = collections.namedtuple('Host', 'name capacity servers used')
Choice = collections.namedtuple('Choice', 'host victims cost_us')
Outcome = collections.namedtuple('Outcome', 'request chosen considered name')

MINUTE_US = 60_000_000


def server(name, vcpus=1, cost_min=None):
    """Return a server; one with a cost is preemptible."""
    cost_us = (cost_min or 0) * MINUTE_US
    return Server(f'uuid-{name}', name, 'flavor', cost_min is not None,
                  3600_000_000 + cost_us, {'VCPU': vcpus}, cost_us)


def host(name, vcpus, *servers):
    """Return a host with plenty of memory and disk."""
    used = {'VCPU': sum(item.resources['VCPU'] for item in servers),
            'MEMORY_MB': 0, 'DISK_GB': 0}
    capacity = {'VCPU': vcpus, 'MEMORY_MB': 1000, 'DISK_GB': 100}
    return Host(name, capacity, servers, used)


def choice(host_name, *victims, cost_min=0):
    """Return a host to choose."""
    return Choice(host_name, victims, cost_min * MINUTE_US)


def outcome(chosen, *others, preemptible=False):
    """Return the outcome of a request for one vCPU, "new"."""
    request = scenarios.Request('new', 'flavor', preemptible)
    considered = tuple(sorted((item for item in (chosen, *others) if item),
                              key=lambda item: item.cost_us))
    return Outcome(request, chosen, considered,
                   'placed' if chosen else 'no_valid_host')
