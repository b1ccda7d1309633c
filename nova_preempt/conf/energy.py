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
             'be switched off while the engine runs; switching it on needs '
             'a restart, unless it was on when the engine started.'),
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
        help='The number of hosts that are on in addition to the forecast '
             'and reservations; at least as many are idle and not reserved. '
             'One, the default, so that the next server need not wait for a '
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
             '``*`` and ``?`` as in a shell. Hosts whose compute service an '
             'operator has disabled are always excluded. Empty, the '
             'default, excludes no other host.'),
    cfg.IntOpt(
        'max_wakes_per_minute', mutable=True, default=10, min=1,
        help='The most hosts that are powered on within a minute. Ten, the '
             'default, bounds the power draw, which is highest during a '
             'boot: many at once may trip a breaker.'),
    cfg.IntOpt(
        'max_sleeps_per_minute', mutable=True, default=5, min=1,
        help='The most hosts that are powered off within a minute. Five, the '
             'default, is less than ``max_wakes_per_minute``, so that an '
             'error is noticed before all hosts are off.'),
    cfg.IntOpt(
        'boot_timeout_s', mutable=True, default=900, min=1,
        help='The longest boot of a host, in seconds. A host that takes '
             'longer is marked as failed and reported, and another is '
             'woken. 15 minutes, the default, leave time for the memory '
             'test of a large host.'),
    cfg.StrOpt(
        'forecast', default='ewma',
        help="""
Forecast of the number of hosts needed: the name of an entry point in the group
``nova_preempt.forecast``.

* ``ewma``, the default as published: the hosts in use, plus the smoothed
  number of hosts that came into use per interval;
* ``max_window``: the most hosts in use within the last hour;
* ``seasonal``: the mean of hosts in use in the same hour of earlier weeks, at
  least the hosts in use now.
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
Driver that powers hosts off and on: the name of an entry point in the group
``nova_preempt.power_driver``. ``hosts_file`` can select another driver for a
host.

* ``redfish``, the default, since most controllers support it: the host's
  controller (BMC), by Redfish;
* ``ironic``: the Bare Metal service, in which the host is a node;
* ``command``: commands of the operator, for IPMI, wake-on-LAN, suspended hosts
  and anything else.
"""),
    cfg.StrOpt(
        'redfish_address', default='',
        help='URL of a host\'s controller, where ``{host}`` is replaced by '
             'the node name and ``{short}`` by its part before the first '
             'dot, such as ``https://{short}-bmc.example.org``. Empty, the '
             'default, leaves it to ``hosts_file``.'),
    cfg.StrOpt(
        'redfish_username', default='',
        help='User name at controllers, unless ``hosts_file`` has another '
             'for a host. Empty, the default, sends no credentials.'),
    cfg.StrOpt(
        'redfish_password', default='', secret=True,
        help='Password of ``redfish_username``, unless ``hosts_file`` has '
             'another for a host. Empty by default; without a user name '
             'it is not used.'),
    cfg.StrOpt(
        'redfish_system', default='',
        help='Path of the system at the controller, such as '
             '``/redfish/v1/Systems/1``. Empty, the default, selects the '
             'only system of the controller.'),
    cfg.StrOpt(
        'redfish_verify', default='true',
        help='Verification of the certificates of controllers: ``true``, '
             '``false``, or the path of a file with trusted CA '
             'certificates. True by default, since the passwords of '
             'controllers give access to all hosts.'),
    cfg.StrOpt(
        'ironic_url', default='', secret=True,
        help='URL of the Bare Metal service. Empty, the default, gets it '
             'from the service catalog, with the credentials in '
             '``[preemption]``.'),
    cfg.StrOpt(
        'command_on', default='', secret=True,
        help='Command of the driver ``command`` that powers a host on. '
             '``{host}`` is replaced by the node name and ``{short}`` by '
             'its part before the first dot. It runs without a shell; the '
             'exit status 0 is success. Empty, the default, leaves it to '
             '``hosts_file``, which can have a MAC address for wake-on-LAN '
             'instead.'),
    cfg.StrOpt(
        'command_off', default='', secret=True,
        help='Command of the driver ``command`` that shuts a host down and '
             'powers it off, or suspends it, such as ``ssh {host} systemctl '
             'suspend``. The rules of ``command_on`` apply. Empty, the '
             'default, leaves it to ``hosts_file``.'),
    cfg.StrOpt(
        'command_force_off', default='', secret=True,
        help='Command of the driver ``command`` that powers a host off '
             'without a shutdown, if ``command_off`` did not within five '
             'minutes. The rules of ``command_on`` apply. Empty, the '
             'default, leaves it to ``hosts_file``; without this command, a '
             'host that does not shut down stays on and is reported.'),
    cfg.StrOpt(
        'command_status', default='', secret=True,
        help='Command of the driver ``command`` that returns whether a host '
             'is on, by its exit status: 0 is on, 1 is off, any other is an '
             'error. The rules of ``command_on`` apply. Empty, the default, '
             'leaves it to ``hosts_file``; the driver requires it.'),
    cfg.StrOpt(
        'command_on_pattern', default='',
        help='Regular expression that matches the output of '
             '``command_status`` if and only if the host is on, such as '
             '``is on`` for ``ipmitool chassis power status``. Empty, the '
             'default, uses the exit status instead.'),
]

_SOURCE_OPTS = [
    cfg.ListOpt(
        'sources', default=[],
        help="""
Sources of the power draw of hosts, in order of precedence: names of entry
points in the group ``nova_preempt.power_source``. A source is asked for the
hosts that earlier sources do not have.

* ``kwapi``: Kwapi's REST API, see ``kwapi_url``;
* ``prometheus``: a query, see ``prometheus_query``;
* ``gnocchi``: IPMI readings that Ceilometer stores, see ``gnocchi_url``;
* ``redfish``: the controllers of hosts, see ``hosts_file``;
* ``static``: a file, see ``static_file``.

Empty by default, since sources need configuration: the power of hosts is then
known from ``figures_file`` and measurements only.
"""),
    cfg.StrOpt(
        'hosts_file', default='',
        help="""
YAML file with settings of single hosts, by node name: the address and
credentials of the controller, the name of the host in a source, and its
driver. The other options of this group apply to all that the file does not
set. It is read at the start; a service with an invalid file does not start::

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
      command:      # a string is split into arguments; there is no shell
        on: wakeonlan 52:54:00:12:34:56
        off: [ssh, '{host}', systemctl, poweroff]
        status: ping -c 1 -W 1 {host}
    node3:
      driver: command
      command:
        mac: 52:54:00:12:34:57

Make it readable by the user of the service only, if it has passwords. Empty by
default, so that all hosts have the same settings.
"""),
    cfg.StrOpt(
        'static_file', default='',
        help='YAML file of the source ``static``, with watts by node name, '
             'for tests and for hosts of constant power draw. A reading is '
             'as old as the last read of the file. Empty by default; the '
             'source requires it.'),
    cfg.URIOpt(
        'kwapi_url', default='http://127.0.0.1:5000', secret=True,
        schemes=['http', 'https'],
        help='URL of Kwapi, without ``/v1``. The default is its default '
             'port on this host.'),
    cfg.URIOpt(
        'prometheus_url', default='http://127.0.0.1:9090', secret=True,
        schemes=['http', 'https'],
        help='URL of Prometheus, without ``/api/v1``. The default is its '
             'default port on this host.'),
    cfg.StrOpt(
        'prometheus_query', default='ipmi',
        help="""
Query of the source ``prometheus``: PromQL whose result is watts, or the name
of a query for an exporter that nova_preempt has.

* ``ipmi``, the default, which needs no software on the hosts: ipmi_exporter;
* ``redfish``: redfish_exporter;
* ``idrac``: idrac_exporter, which reads iDRAC, iLO and XClarity;
* ``scaphandre``: Scaphandre;
* ``kepler``: Kepler 0.10 or newer, the whole host;
* ``kepler_cpu``: Kepler 0.10 or newer, CPUs and memory only;
* ``kepler_joules``: Kepler before 0.10.
"""),
    cfg.StrOpt(
        'prometheus_host_label', default='instance',
        help='Label of the query\'s result that names the host; a port at '
             'the end of its value is ignored. ``source_names`` in '
             '``hosts_file`` can set the value for a host. The default is '
             'the label that all scraped series have.'),
    cfg.StrOpt(
        'prometheus_token_file', default='',
        help='File with a bearer token for Prometheus. Empty, the default, '
             'sends no token, since Prometheus itself requires none.'),
    cfg.StrOpt(
        'gnocchi_url', default='', secret=True,
        help='URL of Gnocchi. Empty, the default, gets it from the service '
             'catalog, with the credentials in ``[preemption]``.'),
]

OPTS = _RANKING_OPTS + CONTROL_OPTS + _DRIVER_OPTS + _SOURCE_OPTS

#: The options that nova-preempt-api reads: without those of drivers and
#: sources, which have credentials.
API_OPTS = _RANKING_OPTS + CONTROL_OPTS


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)


def register_api_opts(conf):
    conf.register_opts(API_OPTS, group=GROUP)
