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

While it is false no reservation is made or made longer, and none that has not
started begins: no host is kept free, emptied, woken up or replaced for one.
Those that have started keep their hosts until their end, and their servers
end as they would. Set it alike for the API, the engine and the schedulers.
It has nothing to say where ``lease_service`` is another than ``native``.
"""),
    cfg.IntOpt(
        'guard_s', default=3600, min=0,
        help="""
How long before a reservation starts its hosts take no more normal servers, in
seconds: whatever is placed there would have to be moved away soon. Servers of
other reservations and preemptible servers are not kept off. An hour, the
default, spares most short servers the move; 0 keeps the hosts open to the
last.
"""),
    cfg.IntOpt(
        'evacuation_lead_s', mutable=True, default=900, min=0,
        help="""
How long before a reservation starts its hosts begin to be emptied of normal
servers, in seconds. They are live-migrated, which takes minutes for large
ones: the default is a quarter of an hour. A host on which normal servers run
is not given to a reservation that starts earlier than this from now.
Preemptible servers are not concerned: they stay until their notice.
"""),
    cfg.IntOpt(
        'before_end_s', default=3600, min=0,
        help='How long before the end of a reservation its owner gets notice '
             'on the bus, in seconds, unless the reservation says otherwise. '
             'An hour, the default, is time to save work or to extend the '
             'reservation.'),
    cfg.StrOpt(
        'end_action', default='shelve',
        choices=[
            ('shelve', 'they are shelved and offloaded, and can be unshelved'),
            ('delete', 'they are deleted'),
        ],
        help='What happens at the end of a reservation to the servers that '
             'run in it, unless the reservation says otherwise. ``shelve``, '
             'the default, loses no work; what is in error or still being '
             'built cannot be shelved and is deleted, and so is, nine '
             'minutes after the end, what keeps the host from another '
             'reservation that needs it, since it could not be shelved. No '
             'server is deleted that an administrator has locked. There is '
             'no ``stop``: a stopped server would keep its host.'),
    cfg.StrOpt(
        'lease_service', default='native',
        help="""
The service that manages reservations: the name of an entry point in the group
``nova_preempt.lease_service``.

* ``native``: the reservations of ``nova-preempt-api``;
* ``blazar``: the host leases of Blazar, read with the credentials in
  ``[reservation_blazar]``.
"""),
    cfg.StrOpt(
        'on_unavailable', default='fail_closed',
        choices=[
            ('fail_closed', 'reserved hosts, as known last, are kept'),
            ('fail_open', 'as if nothing were reserved'),
        ],
        help="""
What the scheduler does once what it knows of reservations is older than a
minute, which is longer than the restart of a service.

* ``fail_closed``, the default, keeps every promise that it knows of: servers
  are still kept off the hosts and times that were reserved when the lease
  service answered last, and placed nowhere if it has not answered since the
  scheduler started. Requests for a reservation are refused.
* ``fail_open`` places servers anywhere. Requests for a reservation are served
  as far as the last answer shows it.
"""),
    cfg.StrOpt(
        'ranking', default='best_fit',
        help="""
Which of the free hosts a reservation gets: the name of an entry point in the
group ``nova_preempt.reservation_ranking``.

* ``best_fit``: those that do the most floating-point operations per watt,
  where that is known; then those whose gap in the calendar it fills best, so
  that long gaps stay for long reservations; then by name;
* ``energy``: by operations per watt, then by name;
* ``name``: by name.
"""),
    cfg.BoolOpt(
        'reservable_default', mutable=True, default=False,
        help='Whether hosts can be reserved of which an administrator has '
             'not said so. False, the default, needs each host to be put '
             'in (``openstack reservation host set --reservable``); True '
             'makes every host reservable until it is taken out.'),
    cfg.IntOpt(
        'max_reservations', mutable=True, default=10, min=-1,
        help='How many reservations a project may have that have not ended. '
             'It bounds what one project can book by mistake. -1 is no '
             'limit. An administrator can give a project limits of its own.'),
    cfg.IntOpt(
        'max_hosts', mutable=True, default=4, min=-1,
        help='How many hosts a project may have reserved at any one time, in '
             'all its reservations. A few, the default, keep one project '
             'from emptying the cloud of others; give those that need more '
             'limits of their own. -1 is no limit but the number of hosts.'),
    cfg.IntOpt(
        'max_duration_s', mutable=True, default=7 * DAY_S, min=-1,
        help='How long a reservation may last, in seconds. The default is a '
             'week: what needs a host for much longer is better served by '
             'an aggregate. -1 is no limit.'),
    cfg.IntOpt(
        'max_advance_s', mutable=True, default=90 * DAY_S, min=-1,
        help='How far ahead a reservation may start, in seconds from now. '
             'The default is 90 days: the calendar of the hosts stays open '
             'to others beyond. -1 is no limit.'),
    cfg.IntOpt(
        'max_created_per_day', mutable=True, default=100, min=-1,
        help='How many reservations a project may make within 24 hours, '
             'those that it has cancelled among them. It bounds the rows of '
             'the database that one project can fill. A hundred, the '
             'default, is far more than people make. -1 is no limit.'),
    cfg.IntOpt(
        'retention_days', mutable=True, default=90, min=0,
        help='For how many days the engine keeps reservations, and requests '
             'of the backlog, that are over. '
             'Ninety, the default, cover a quarter of a year of bills; '
             '"nova-preempt-manage db archive" writes them to a file before. '
             '0 keeps them until "nova-preempt-manage db purge".'),
    cfg.ListOpt(
        'hidden_properties', default=['hypervisor_hostname', 'service_host'],
        help='Properties of hosts that only administrators see and ask for, '
             'beside those hidden by "openstack reservation property set". '
             'The default are the names of hosts, which users of Nova do not '
             'see either.'),
    cfg.FloatOpt(
        'brake_percent', mutable=True, default=20, min=0, max=100,
        help="""
No reservation loses a host as long as more than this share of all hosts, in
percent, and more than two are down, disabled or gone at once, or half of
them: that has one cause, such as a message bus that is away, and most of them
will be back. All hosts count that are enabled or reserved; those that are
powered off to save energy count as up. Owners whose host is down are told.
Where fewer than half are down, and there are as many free hosts that match as
reservations would lose, that lasts for half an hour at most. Afterwards each
host has two minutes again. 100 releases the brake at once. A fifth, the
default, is more than dies at once and less than what hangs on one switch in
most clouds.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
