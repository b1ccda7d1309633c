# SPDX-License-Identifier: Apache-2.0
"""Kinds of hosts on the map."""

from nova_preempt_dashboard import periods

KINDS = ('normal', 'preemptible', 'free', 'reserved', 'asleep', 'down')


def active_booking(host, now):
    """Return the booking of a host that is active now, None if none is.

    :param now: an aware datetime
    """
    for item in host.reservations or ():
        if periods.parse(item['start_at']) <= now < periods.parse(
                item['end_at']):
            return item
    return None


def kind(host, power_state, now):
    """Return the kind of a host, of KINDS.

    :param host: a Host of the SDK
    :param power_state: of its EnergyHost, None without power control
    :param now: an aware datetime
    """
    if power_state in ('asleep', 'sleeping', 'waking'):
        return 'asleep'
    if host.state != 'up' or host.status != 'enabled':
        return 'down'
    if active_booking(host, now):
        return 'reserved'
    if not host.vacant:
        return 'normal'
    return 'preemptible' if host.running_servers else 'free'


def count(kinds):
    """Return [(kind, number)] in the order of KINDS."""
    kinds = list(kinds)
    return [(name, kinds.count(name)) for name in KINDS]
