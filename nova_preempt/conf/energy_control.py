# SPDX-License-Identifier: Apache-2.0
"""[energy]: when idle hosts are powered off, and when they come back."""

from oslo_config import cfg

OPTS = [
    cfg.BoolOpt(
        'enabled', mutable=True, default=False,
        help='Whether ``nova-preempt-engine`` powers idle hosts off and on. '
             'Off by default: it needs a ``driver`` for each host. Readings, '
             'figures and the ranking of hosts do not depend on it. Turned '
             'off while the engine runs, no host is switched any more; '
             'to turn it on the engine has to be restarted, unless it was on '
             'when it started.'),
    cfg.IntOpt(
        'switch_interval_s', default=300, min=1,
        help='How often it is decided which hosts are powered off or on, in '
             'seconds. Five minutes, as published: about the time that a '
             'host takes to boot.'),
    cfg.IntOpt(
        'idle_intervals', mutable=True, default=5, min=1,
        help='How many times in a row a host must have been noted as idle '
             'before it may be powered off. Five, as published.'),
    cfg.IntOpt(
        'spare_hosts', mutable=True, default=1, min=0,
        help='How many hosts are on beyond those that the forecast or '
             'reservations ask for; so many at least have neither servers '
             'nor a reservation. One, so that the next server need not wait '
             'for a boot.'),
    cfg.IntOpt(
        'minimum_hosts', mutable=True, default=1, min=0,
        help='How many hosts are on at least, with or without servers, in '
             'the whole cloud.'),
    cfg.IntOpt(
        'minimum_hosts_per_aggregate', mutable=True, default=0, min=0,
        help='How many hosts are on at least in each host aggregate; where '
             'it has fewer, all of them. The aggregate\'s metadata key '
             '``preemptible:minimum_hosts`` overrides it. 0, the default, '
             'asks for none: many aggregates only describe hosts.'),
    cfg.ListOpt(
        'excluded_hosts', mutable=True, default=[],
        help='Node names of hosts that are never powered off or on, with '
             '``*`` and ``?`` as in a shell. A host whose compute service an '
             'operator has disabled is never touched in any case. Empty by '
             'default.'),
    cfg.IntOpt(
        'max_wakes_per_minute', mutable=True, default=10, min=1,
        help='How many hosts are powered on within a minute at most. Hosts '
             'that start draw most, and all at once may trip a breaker.'),
    cfg.IntOpt(
        'max_sleeps_per_minute', mutable=True, default=5, min=1,
        help='How many hosts are powered off within a minute at most. Fewer '
             'than on: what was wrong can be seen before all are off.'),
    cfg.IntOpt(
        'boot_timeout_s', mutable=True, default=900, min=1,
        help='How long a host may need to boot, in seconds. After it the '
             'host is marked as failed and reported, and another is woken '
             'in its place.'),
    cfg.StrOpt(
        'forecast', default='ewma',
        help="""
How many hosts will be needed: the name of an entry point in the group
``nova_preempt.forecast``.

* ``ewma``: those in use, and the smoothed number of hosts that come into use
  in an interval;
* ``max_window``: the most that were in use within the last hour;
* ``seasonal``: the mean of what the same hour of earlier weeks needed, and
  not fewer than are in use.
"""),
    cfg.BoolOpt(
        'demand_wakes', mutable=True, default=True,
        help='Whether a normal server that finds no host wakes sleeping '
             'ones that could serve it. Only with ``enabled``.'),
    cfg.IntOpt(
        'demand_wait_s', mutable=True, default=600, min=0,
        help="""
How long such a request waits in the scheduler for the hosts it has woken, in
seconds. It must be well below Nova's ``long_rpc_timeout`` (1800 s), within
which the conductor waits for the scheduler. A waiting request holds a thread
of the scheduler.

The default is twice what a host is taken to need to boot until it was seen to,
so that nobody notices more than a delay. With 0 the request fails at once,
with a message that capacity is on its way.
"""),
]
