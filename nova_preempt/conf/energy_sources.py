# SPDX-License-Identifier: Apache-2.0
"""[energy]: where readings of watts come from."""

from oslo_config import cfg

#: When a reading counts.
OPTS = [
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
