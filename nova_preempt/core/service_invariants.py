# SPDX-License-Identifier: Apache-2.0

"""Invariants of reservations, of the power of hosts, and of the backlog."""

from collections import Counter
from collections.abc import Iterator

from nova_preempt.core.energy import power_steps
from nova_preempt.core.invariant_snapshot import Snapshot


def hosts_are_reserved_once(snapshot: Snapshot) -> Iterator[str]:
    """A host belongs to one reservation at a time.

    Otherwise two projects would share it.
    """
    count = Counter(host for each in snapshot.reservations
                    if each.is_due for host in each.hosts)
    for name, number in sorted(count.items()):
        if number > 1:
            yield f"{name} is in {number} reservations"


def reserved_hosts_are_empty(snapshot: Snapshot) -> Iterator[str]:
    """A started reservation has empty hosts or reports other servers.

    Otherwise its owner would find occupied hosts.
    """
    owners = {name: each for each in snapshot.reservations
              if each.is_due and not each.says for name in each.hosts}
    for server in snapshot.servers.values():
        each = owners.get(server.guest_on)
        if each is not None and not server.is_deleted and (
                server.uuid not in each.may_use):
            yield (f"{server.uuid} is on {server.guest_on}, which "
                   f"reservation {each.uuid} has")


def reserved_hosts_are_closed(snapshot: Snapshot) -> Iterator[str]:
    """The scheduler puts no other servers on reserved hosts.

    Otherwise they would have to be moved or evicted at once.
    """
    for each in snapshot.reservations:
        for uuid in sorted(each.strangers):
            yield f"{uuid} got a host of reservation {each.uuid}"


def reservations_get_hosts(snapshot: Snapshot) -> Iterator[str]:
    """A reservation that lacks a host gets one that can be emptied.

    Otherwise preemptible servers would have precedence over it.
    """
    for each in snapshot.reservations:
        for name in sorted(each.available):
            yield f"reservation {each.uuid} lacks a host, and {name} is free"


def hosts_with_guests_are_on(snapshot: Snapshot) -> Iterator[str]:
    """A host with a guest is never off.

    Otherwise the server would be killed.
    """
    off = {host.name for host in snapshot.hosts if host.is_off}
    for server in snapshot.servers.values():
        if server.guest_on in off and not server.is_deleted:
            yield f"{server.guest_on} is off with {server.uuid} on it"


def hosts_stop_switching(snapshot: Snapshot) -> Iterator[str]:
    """No host remains between the states on and off.

    Such a host draws power, but cannot be used.
    """
    for host in snapshot.hosts:
        if host.power not in (power_steps.ON, power_steps.ASLEEP,
                              power_steps.FAILED):
            yield f"{host.name} is still {host.power}"


def hosts_on_are_open(snapshot: Snapshot) -> Iterator[str]:
    """We have not disabled a host whose recorded state is on.

    Otherwise it could not be used.
    """
    for host in snapshot.hosts:
        if host.power == power_steps.ON and host.is_closed:
            yield f"{host.name} is on, and its compute service disabled"


def hosts_asleep_are_off(snapshot: Snapshot) -> Iterator[str]:
    """A host whose recorded state is asleep is off.

    Such a host draws power, but cannot be used.
    """
    for host in snapshot.hosts:
        if host.power == power_steps.ASLEEP and not host.is_off:
            yield f"{host.name} is recorded as asleep, and is on"


def needed_hosts_are_on(snapshot: Snapshot) -> Iterator[str]:
    """A host with servers or a reservation is on, or has failed.

    Otherwise its users would wait without end.
    """
    reserved = {name: f"reservation {each.uuid}"
                for each in snapshot.reservations
                if each.is_due and not each.says for name in each.hosts}
    for host in snapshot.hosts:
        users = [f"server {uuid}" for uuid in sorted(host.allocations)
                 if uuid in snapshot.servers
                 and not snapshot.servers[uuid].is_deleted]
        users += [reserved[host.name]] if host.name in reserved else []
        if users and host.is_off and host.power != power_steps.FAILED:
            yield f"{host.name} is off, and {users[0]} needs it"


def builds_end(snapshot: Snapshot) -> Iterator[str]:
    """No server remains in the state BUILD.

    Otherwise its owner would wait without end.
    """
    failed = {host.name for host in snapshot.hosts
              if host.power == power_steps.FAILED}
    for server in snapshot.servers.values():
        if server.vm_state == "building" and not server.is_deleted and (
                not failed.intersection(snapshot.hosts_of(server.uuid))):
            yield f"{server.uuid} is still {server.task_state}"


def requests_start_once(snapshot: Snapshot) -> Iterator[str]:
    """A request has no more servers than requested.

    Its project pays for each server.
    """
    for each in snapshot.requests:
        if len(each.servers) > each.count:
            yield (f"request {each.uuid} has {len(each.servers)} servers "
                   f"instead of {each.count}")


def trusts_have_a_request(snapshot: Snapshot) -> Iterator[str]:
    """A trust belongs to an open request.

    Otherwise the service could keep acting for the user.
    """
    wanted = {each.trust for each in snapshot.requests if not each.is_over}
    for trust in sorted(snapshot.trusts - wanted):
        yield f"trust {trust} belongs to no request that waits"


#: Hold at every moment.
ALWAYS = (hosts_are_reserved_once, reserved_hosts_are_closed,
          hosts_with_guests_are_on)
#: Hold once nothing is under way: no fault, no request, no eviction.
AT_REST = (
    reserved_hosts_are_empty, reservations_get_hosts, hosts_stop_switching,
    hosts_on_are_open, hosts_asleep_are_off, needed_hosts_are_on, builds_end,
    requests_start_once, trusts_have_a_request)
