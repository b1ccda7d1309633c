# SPDX-License-Identifier: Apache-2.0
"""[energy]: what hosts draw and deliver, and when idle ones are asleep."""

from oslo_config import cfg

GROUP = 'energy'

_RANKING_OPTS = [
    cfg.StrOpt(
        'figures_file', default='',
        help="""
A YAML file of what hosts deliver and draw, by node name::

    node1:
      flops: 1.2e12     # at full load, double precision
      watts: 350        # at full load
      idle_watts: 110   # without servers; may be left out

Where ``nova-preempt-benchmark`` has measured a host as well, the file wins:
it is what an operator wrote. It is read again when it changes. Empty, the
default, leaves it to the measurements.
"""),
    cfg.StrOpt(
        'ranking', default='efficiency',
        choices=[
            ('efficiency', 'FLOPS per watt at full load, higher wins'),
            ('marginal', 'the watts that the request adds, fewer win'),
        ],
        help="""
What ``KWRankingWeigher`` prefers hosts by.

``efficiency`` gathers work on hosts that do most of it with a watt.
``marginal`` asks what this one request adds: a host without servers costs its
idle power and the request's share of what full load draws beyond it; a host
that runs servers anyway only that share. It needs ``watts`` and
``idle_watts`` of a host, and fills running hosts before it wakes others.
"""),
    cfg.BoolOpt(
        'rank_by_readings', default=True,
        help="""
Whether ``KWRankingWeigher`` goes by what hosts draw now, where one of
``sources`` tells: a host that draws a tenth more than its figures let expect
at its load is taken to draw a tenth more at any load. Of a host without
``idle_watts``, or without ``watts``, the reading itself is taken for the watts
at full load. A reading older than five minutes does not count. True
by default: the published ranking is by measured watts. False ranks by the
figures alone. It changes nothing without ``sources``.
"""),
    cfg.StrOpt(
        'unknown', default='neutral',
        choices=[
            ('neutral', 'as the mean of the hosts with figures'),
            ('last', 'behind all hosts with figures'),
        ],
        help='How ``KWRankingWeigher`` takes a host without figures. Neutral '
             'by default, so that a host that nobody has measured yet is '
             'neither favoured nor left empty.'),
]

CONTROL_OPTS = [
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

_DRIVER_OPTS = [
    cfg.StrOpt(
        'driver', default='redfish',
        help="""
How hosts are powered off and on: the name of an entry point in the group
``nova_preempt.power_driver``; ``hosts_file`` may name another for a host.

* ``redfish``: the host's own controller, by Redfish;
* ``ironic``: through the Bare Metal service that knows the host as a node;
* ``command``: commands of yours, for IPMI, wake-on-LAN, hosts that are
  suspended, and all else.
"""),
    cfg.StrOpt(
        'redfish_address', default='',
        help='The address of a host\'s controller, with ``{host}`` for the '
             'node name and ``{short}`` for its part before the first dot, '
             'such as ``https://{short}-bmc.example.org``. Empty, the '
             'default, leaves it to ``hosts_file``.'),
    cfg.StrOpt(
        'redfish_username', default='',
        help='The user at the controllers, where ``hosts_file`` names none. '
             'Empty, the default, sends no credentials.'),
    cfg.StrOpt(
        'redfish_password', default='', secret=True,
        help='Its password. Empty by default.'),
    cfg.StrOpt(
        'redfish_system', default='',
        help='The path of the system at the controller, such as '
             '``/redfish/v1/Systems/1``. Empty, the default, takes the only '
             'one there is.'),
    cfg.StrOpt(
        'redfish_verify', default='true',
        help='Whether the certificates of controllers are verified: '
             '``true``, ``false``, or a file of the authorities to trust. '
             'True by default: their passwords open every host.'),
    cfg.StrOpt(
        'ironic_url', default='', secret=True,
        help='Where the Bare Metal service is. Empty, the default, looks it '
             'up in the catalog of services, as the user in '
             '``[preemption]``.'),
    cfg.StrOpt(
        'command_on', default='', secret=True,
        help='The command of the driver ``command`` that powers a host on, '
             'with ``{host}`` for the node name and ``{short}`` for its part '
             'before the first dot; it is run without a shell, and 0 means '
             'done. Empty, the default, leaves it to ``hosts_file``, where a '
             'host may have a MAC address instead.'),
    cfg.StrOpt(
        'command_off', default='', secret=True,
        help='The command that lets a host shut down and power off, '
             'likewise, or suspends it, such as '
             '``ssh {host} systemctl suspend``.'),
    cfg.StrOpt(
        'command_force_off', default='', secret=True,
        help='The command that switches a host off hard, likewise, where '
             '``command_off`` did not within five minutes. Empty, '
             'the default, leaves it to ``hosts_file``; without one a host '
             'that does not shut down stays on and is reported.'),
    cfg.StrOpt(
        'command_status', default='', secret=True,
        help='The command that tells whether a host is on, likewise: 0 is '
             'on, 1 is off, all else is an error. Empty, the default, leaves '
             'it to ``hosts_file``: the driver needs one.'),
    cfg.StrOpt(
        'command_on_pattern', default='',
        help='A regular expression that is found in what '
             '``command_status`` prints if the host is on, such as ``is on`` '
             'for ``ipmitool chassis power status``. Empty, the default, '
             'goes by the exit status.'),
]

_SOURCE_OPTS = [
    cfg.ListOpt(
        'sources', default=[],
        help="""
Where the watts of hosts are read: names of entry points in the group
``nova_preempt.power_source``. A host that the first one says nothing of is
looked for in the next, and so on.

* ``kwapi``: Kwapi's REST API, see ``kwapi_url``;
* ``prometheus``: a query, see ``prometheus_query``;
* ``gnocchi``: what Ceilometer collects by IPMI, see ``gnocchi_url``;
* ``redfish``: each host's own controller, see ``hosts_file``;
* ``static``: a file, see ``static_file``.

Empty, the default, reads nothing: what hosts draw at full load and idle is
then known from ``figures_file`` or measurements only.
"""),
    cfg.StrOpt(
        'hosts_file', default='',
        help="""
A YAML file of what belongs to single hosts, by node name: the address and
credentials of a host's controller, its name in a source, its driver. What is
not there comes from the other options of this group. It is read at the start,
and what is wrong in it is told with its place::

    node1:
      driver: redfish
      redfish:
        address: https://bmc1.example.org
        username: nova-preempt
        password: secret
        system: /redfish/v1/Systems/1
      source_names:
        kwapi: probe.17
        prometheus: node1-ipmi:9290
    node2:
      driver: command
      command:      # a string is split, but not given to a shell
        on: wakeonlan 52:54:00:12:34:56
        off: [ssh, '{host}', systemctl, poweroff]
        status: ping -c 1 -W 1 {host}
    node3:
      driver: command
      command:
        mac: 52:54:00:12:34:57

Let only the service's user read it where it holds passwords. Empty by
default.
"""),
    cfg.StrOpt(
        'static_file', default='',
        help='The file of the source ``static``: YAML, watts by node name. '
             'Its readings are as old as the last reading of the file. For '
             'tests, and for hosts whose draw does not change. Empty by '
             'default, which that source refuses.'),
    cfg.URIOpt(
        'kwapi_url', default='http://127.0.0.1:5000', secret=True,
        schemes=['http', 'https'],
        help='Where Kwapi is, without ``/v1``. The default is the port that '
             'it listens on.'),
    cfg.URIOpt(
        'prometheus_url', default='http://127.0.0.1:9090', secret=True,
        schemes=['http', 'https'],
        help='Where Prometheus is, without ``/api/v1``. The default is the '
             'port that it listens on.'),
    cfg.StrOpt(
        'prometheus_query', default='ipmi',
        help="""
What Prometheus is asked: PromQL that gives watts, or the name of a query that
comes with nova_preempt for an exporter.

* ``ipmi``: ipmi_exporter;
* ``redfish``: redfish_exporter;
* ``idrac``: idrac_exporter, which reads iDRAC, iLO and XClarity;
* ``scaphandre``: Scaphandre;
* ``kepler``: Kepler since 0.10, the whole host; ``kepler_cpu`` only its
  processors and memory; ``kepler_joules``: Kepler before 0.10.

The default is the exporter that needs nothing on the hosts.
"""),
    cfg.StrOpt(
        'prometheus_host_label', default='instance',
        help='The label of the result that names the host. A port at its end '
             'is left out, and ``source_names`` in ``hosts_file`` may say '
             'what it is for a host. By default the one that every scraped '
             'series has.'),
    cfg.StrOpt(
        'prometheus_token_file', default='',
        help='A file with a bearer token for Prometheus. Empty, the default, '
             'sends none: Prometheus itself asks for none.'),
    cfg.StrOpt(
        'gnocchi_url', default='', secret=True,
        help='Where Gnocchi is. Empty, the default, looks it up in the '
             'catalog of services, as the user in ``[preemption]``.'),
]

OPTS = _RANKING_OPTS + CONTROL_OPTS + _DRIVER_OPTS + _SOURCE_OPTS

#: What nova-preempt-api reads: neither how hosts are switched and watched, nor
#: with which credentials.
API_OPTS = _RANKING_OPTS + CONTROL_OPTS


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)


def register_api_opts(conf):
    conf.register_opts(API_OPTS, group=GROUP)
