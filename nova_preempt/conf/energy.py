# SPDX-License-Identifier: Apache-2.0
"""Options of [energy]: host efficiency, and powering idle hosts off."""

from oslo_config import cfg

GROUP = 'energy'

_RANKING_OPTS = [
    cfg.StrOpt(
        'figures_file', default='',
        help="""
A YAML file with the speed and power of hosts, by node name::

    node1:
      flops: 1.2e12     # at full load, double precision
      watts: 350        # at full load
      idle_watts: 110   # without servers; may be left out

The file has precedence over measurements of ``nova-preempt-benchmark``, since
an operator wrote it. It is read again when it changes. Empty, the default,
uses the measurements only.
"""),
    cfg.StrOpt(
        'ranking', default='efficiency',
        choices=[
            ('efficiency', 'FLOPS per watt at full load, higher wins'),
            ('marginal', 'the watts that the request adds, fewer win'),
        ],
        help="""
The criterion of ``KWRankingWeigher``.

``efficiency``, the default as published, gathers servers on the most efficient
hosts. ``marginal`` estimates the watts that the request adds: an empty host
adds its idle power and the request's share of the power between idle and full
load; a host with servers adds that share only. It needs ``watts`` and
``idle_watts`` of a host, and fills running hosts before empty ones.
"""),
    cfg.BoolOpt(
        'rank_by_readings', default=True,
        help="""
Whether ``KWRankingWeigher`` uses current readings from ``sources``: a host
that draws a tenth more than its figures predict for its load is assumed to
draw a tenth more at any load. For a host without ``idle_watts`` or ``watts``,
the reading is used as the watts at full load. Readings older than five
minutes are ignored. True by default, since the published ranking uses
measured watts. False uses the figures only. No effect without ``sources``.
"""),
    cfg.StrOpt(
        'unknown', default='neutral',
        choices=[
            ('neutral', 'with the mean weight of hosts with figures'),
            ('last', 'behind all hosts with figures'),
        ],
        help='How ``KWRankingWeigher`` ranks a host without figures. Neutral '
             'by default, so that a host that was not measured yet is '
             'neither preferred nor avoided.'),
]

CONTROL_OPTS = [
    cfg.BoolOpt(
        'enabled', mutable=True, default=False,
        help='Whether ``nova-preempt-engine`` powers idle hosts off and on. '
             'Off by default: it needs a ``driver`` for each host. Readings, '
             'figures and the ranking of hosts do not depend on it. It can '
             'be turned off while the engine runs; turning it on needs a '
             'restart, unless it was on when the engine started.'),
    cfg.IntOpt(
        'switch_interval_s', default=300, min=1,
        help='Seconds between two decisions on which hosts are powered off '
             'or on. Five minutes, as published: about the boot time of a '
             'host.'),
    cfg.IntOpt(
        'idle_intervals', mutable=True, default=5, min=1,
        help='The number of successive decisions at which a host must be '
             'idle before it may be powered off. Five, as published.'),
    cfg.IntOpt(
        'spare_hosts', mutable=True, default=1, min=0,
        help='The number of hosts that are on beyond the forecast and '
             'reservations; at least as many have neither servers nor a '
             'reservation. One, so that the next server need not wait for a '
             'boot.'),
    cfg.IntOpt(
        'minimum_hosts', mutable=True, default=1, min=0,
        help='The least number of hosts that are on in the whole cloud, with '
             'or without servers. One, so that the cloud is never off.'),
    cfg.IntOpt(
        'minimum_hosts_per_aggregate', mutable=True, default=0, min=0,
        help='The least number of hosts that are on in each host aggregate; '
             'in a smaller aggregate, all hosts. The aggregate\'s metadata '
             'key ``preemptible:minimum_hosts`` overrides it. 0 by default, '
             'since many aggregates only describe hosts.'),
    cfg.ListOpt(
        'excluded_hosts', mutable=True, default=[],
        help='Node names of hosts that are never powered off or on, with '
             '``*`` and ``?`` as in a shell. A host whose compute service an '
             'operator has disabled is never touched in any case. Empty by '
             'default.'),
    cfg.IntOpt(
        'max_wakes_per_minute', mutable=True, default=10, min=1,
        help='The most hosts that are powered on within a minute. Booting '
             'hosts draw most, and many at once may trip a breaker.'),
    cfg.IntOpt(
        'max_sleeps_per_minute', mutable=True, default=5, min=1,
        help='The most hosts that are powered off within a minute. Fewer '
             'than powered on, so that an error is noticed before all hosts '
             'are off.'),
    cfg.IntOpt(
        'boot_timeout_s', mutable=True, default=900, min=1,
        help='The longest boot of a host, in seconds. A host that takes '
             'longer is marked as failed and reported, and another is '
             'woken. The default leaves time for the memory test of a large '
             'host.'),
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
        help='Whether a request for a normal server that finds no host '
             'wakes sleeping hosts that could run it. On by default, so '
             'that sleeping hosts cause a delay and no failure. Needs '
             '``enabled``.'),
    cfg.IntOpt(
        'demand_wait_s', mutable=True, default=600, min=0,
        help="""
Seconds that a request waits in the scheduler for the hosts it has woken. It
must be well below Nova's ``long_rpc_timeout`` (1800 s), within which the
conductor waits for the scheduler. A waiting request occupies a thread of the
scheduler.

The default is twice the boot time that is assumed of a host that was not seen
to boot, so that users notice a delay only. With 0 the request fails at once,
with a message that hosts are being woken.
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
