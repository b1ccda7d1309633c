# SPDX-License-Identifier: Apache-2.0
"""Options of [reservation]: whole hosts reserved for some time."""

from oslo_config import cfg

GROUP = 'reservation'

END_ACTIONS = ('shelve', 'delete')

DAY_S = 86400

OPTS = [
    cfg.BoolOpt(
        'enabled', default=False, mutable=True,
        help="""
Whether projects may reserve hosts with ``nova-preempt-api``. A reservation
evicts preemptible servers, migrates normal servers of other projects away and
keeps new servers off its hosts. Off by default, since an operator has to
define reservable hosts, limits of projects and policies.

While it is false, no reservation is created, extended or started, and no host
is kept free, drained, woken or replaced for one. Reservations that have
started keep their hosts until their end, when their servers end as usual. Set
the same value for the API, the engine and the schedulers. No effect unless
``lease_service`` is ``native``.
"""),
    cfg.IntOpt(
        'guard_s', default=3600, min=0,
        help="""
Seconds before the start of a reservation during which its hosts accept no new
normal servers, which would have to be migrated away soon. Servers of other
reservations and preemptible servers are still accepted. An hour, the default,
spares most short-lived servers a migration. 0 accepts normal servers until the
start.
"""),
    cfg.IntOpt(
        'evacuation_lead_s', mutable=True, default=900, min=0,
        help="""
Seconds before the start of a reservation at which the engine begins to drain
its hosts by live-migrating normal servers. A quarter of an hour, the default,
leaves time to migrate large servers, which takes minutes each. A reservation
that starts sooner than this gets no host on which normal servers run.
Preemptible servers stay until their notice.
"""),
    cfg.IntOpt(
        'before_end_s', default=3600, min=0,
        help='Seconds before the end of a reservation at which its owner is '
             'notified on the message bus, unless the reservation has a time '
             'of its own. An hour, the default, is time to save work or to '
             'extend the reservation.'),
    cfg.StrOpt(
        'end_action', default='shelve',
        choices=[
            ('shelve', 'shelved and offloaded; they can be unshelved'),
            ('delete', 'deleted'),
        ],
        help="""
Action on the servers of a reservation at its end, unless the reservation has
an action of its own. ``shelve``, the default, loses no work. There is no
``stop``, since a stopped server would keep its host.

With ``shelve``, a server in ``ERROR`` or ``BUILD`` is deleted, since it cannot
be shelved. If another reservation needs the host, a server that could not be
shelved within nine minutes after the end is deleted, too. A server that an
administrator has locked is never deleted.
"""),
    cfg.StrOpt(
        'lease_service', default='native',
        help="""
The service that manages reservations: the name of an entry point in the group
``nova_preempt.lease_service``.

* ``native``, the default, which needs no other service: the reservations of
  ``nova-preempt-api``;
* ``blazar``: the host leases of Blazar, read with the credentials in
  ``[reservation_blazar]``.
"""),
    cfg.StrOpt(
        'on_unavailable', default='fail_closed',
        choices=[
            ('fail_closed', 'keep the reservations that were read last'),
            ('fail_open', 'ignore reservations'),
        ],
        help="""
Behavior of the scheduler while its data on reservations is older than a
minute, since the lease service does not answer. A minute is longer than the
restart of a service.

* ``fail_closed``, the default, keeps all promises: hosts stay reserved as in
  the last answer. If the service has not answered since the scheduler started,
  no host is selected. Requests for a reservation are refused.
* ``fail_open`` places servers on any host. Requests for a reservation are
  served if the last answer has it.
"""),
    cfg.StrOpt(
        'ranking', default='best_fit',
        help="""
Order in which a reservation gets free hosts: the name of an entry point in the
group ``nova_preempt.reservation_ranking``.

* ``best_fit``, the default, which saves energy and keeps long gaps for long
  reservations: hosts with the most FLOPS per watt first, if known; then hosts
  whose gap in the calendar fits best; then by name;
* ``energy``: hosts with the most FLOPS per watt first, then by name;
* ``name``: by name.
"""),
    cfg.BoolOpt(
        'reservable_default', mutable=True, default=False,
        help='Whether hosts are reservable unless an administrator has set '
             'it (``openstack reservation host set``, ``--reservable`` or '
             '``--not-reservable``). False, the default, keeps all hosts '
             'for other users until an administrator selects some.'),
    cfg.IntOpt(
        'max_reservations', mutable=True, default=10, min=-1,
        help='The most reservations of a project that have not ended. Ten, '
             'the default, bounds what a project can book by mistake. -1 is '
             'no limit. An administrator can set other limits for a '
             'project.'),
    cfg.IntOpt(
        'max_hosts', mutable=True, default=4, min=-1,
        help='The most hosts that are reserved for a project at any time, in '
             'all its reservations. Four, the default, keep a project from '
             'crowding out others. -1 is no limit. An administrator can set '
             'other limits for a project.'),
    cfg.IntOpt(
        'max_duration_s', mutable=True, default=7 * DAY_S, min=-1,
        help='The longest duration of a reservation, in seconds. A week is '
             'the default: for longer needs a host aggregate is simpler. -1 '
             'is no limit.'),
    cfg.IntOpt(
        'max_advance_s', mutable=True, default=90 * DAY_S, min=-1,
        help='The latest start of a reservation, in seconds from now. 90 '
             'days, the default, keep a project from booking hosts for '
             'years ahead. -1 is no limit.'),
    cfg.IntOpt(
        'max_created_per_day', mutable=True, default=100, min=-1,
        help='The most reservations that a project may create within 24 '
             'hours, including cancelled ones. It bounds the database rows '
             'of a project. A hundred, the default, is far more than people '
             'create. -1 is no limit.'),
    cfg.IntOpt(
        'retention_days', mutable=True, default=90, min=0,
        help='Days after which the engine deletes ended reservations and '
             'closed backlog requests from the database. Ninety, the '
             'default, cover a quarter of a year of bills. '
             '``nova-preempt-manage db archive`` writes them to a file '
             'before. 0 keeps them until ``nova-preempt-manage db purge``.'),
    cfg.ListOpt(
        'hidden_properties', default=['hypervisor_hostname', 'service_host'],
        help='Host properties that only administrators can read and request, '
             'besides properties hidden by ``openstack reservation property '
             'set``. The default is the names of hosts, which Nova hides '
             'from users, too.'),
    cfg.FloatOpt(
        'brake_percent', mutable=True, default=20, min=0, max=100,
        help="""
The percentage of hosts that are down at once above which the engine replaces
no hosts of reservations. Many hosts that are down at once commonly have one
cause, such as the message bus, and come back. 20, the default, is more than
fail independently, and less than the hosts behind one switch in most clouds.

Hosts that are down, disabled or deleted count, out of all enabled or reserved
hosts; hosts that are powered off to save energy count as up. Up to two hosts
are replaced whatever their percentage, unless they are half of all.

The engine notifies owners whose host is down. If fewer than half of all hosts
are down, and enough free hosts match, it replaces them after half an hour,
once they have been down for two further minutes. 100 is no limit, unless all
hosts are down.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
