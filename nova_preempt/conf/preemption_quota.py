# SPDX-License-Identifier: Apache-2.0
"""Options of [preemption_quota]: quota of preemptible and normal servers."""

from oslo_config import cfg
from oslo_config import types

GROUP = 'preemption_quota'

OPTS = [
    cfg.StrOpt(
        'driver', default='none',
        choices=[
            ('none', 'no limits beyond Nova\'s quota'),
            ('options', 'limits from the options of this group'),
            ('oslo_limit', 'limits that are registered in Keystone'),
        ],
        help="""
Source of project limits that the scheduler enforces in addition to Nova's
quota.

* ``none``, the default, leaves quota to Nova, which counts preemptible servers
  like normal ones;
* ``options``: the options below;
* ``oslo_limit``: the limits in Keystone with the names
  ``preemptible_servers``, ``preemptible_vcpus`` and
  ``preemptible_memory_mb``, and with ``enforce_normal`` also
  ``normal_servers``, ``normal_vcpus`` and ``normal_memory_mb``. As in Nova, a
  limit that is not registered is 0. ``[oslo_limit]`` has the credentials and
  the endpoint, as for Nova's unified limits.
"""),
    cfg.IntOpt(
        'servers', default=-1, min=-1,
        help='The most preemptible servers of a project. -1, the default, is '
             'no limit, since they use idle capacity only.'),
    cfg.IntOpt(
        'vcpus', default=-1, min=-1,
        help='The most vCPUs of all preemptible servers of a project, by '
             'their flavors. -1, the default, is no limit, since they use '
             'idle capacity only.'),
    cfg.IntOpt(
        'memory_mb', default=-1, min=-1,
        help='The most RAM of all preemptible servers of a project, by their '
             'flavors, in MiB. -1, the default, is no limit, since they use '
             'idle capacity only.'),
    cfg.BoolOpt(
        'enforce_normal', default=False,
        help="""
Whether the scheduler limits normal servers, too.

Nova's API checks its quota before scheduling and counts both kinds of servers
together. To allow preemptible servers beyond the quota of normal servers,
raise Nova's quota and set limits of normal servers here. False, the default,
leaves normal servers to Nova's quota, so that their requests cost nothing
more.
"""),
    cfg.IntOpt(
        'normal_servers', default=-1, min=-1,
        help='The most normal servers of a project, with '
             '``enforce_normal``. -1, the default, leaves it to Nova\'s '
             'quota.'),
    cfg.IntOpt(
        'normal_vcpus', default=-1, min=-1,
        help='The most vCPUs of all normal servers of a project, by their '
             'flavors, with ``enforce_normal``. -1, the default, leaves it '
             'to Nova\'s quota.'),
    cfg.IntOpt(
        'normal_memory_mb', default=-1, min=-1,
        help='The most RAM of all normal servers of a project, by their '
             'flavors, in MiB, with ``enforce_normal``. -1, the default, '
             'leaves it to Nova\'s quota.'),
    cfg.MultiOpt(
        'project_limits', item_type=types.Dict(),
        help="""
Limits of a single project, with ``driver = options``. One line per project,
such as ``project_limits = project_id:0f3b7c...,servers:50,vcpus:100``: the
fields are ``project_id`` and the six limits above, in their units. Limits that
a line does not name are as above. Empty by default, so that all projects have
the same limits.
"""),
    cfg.StrOpt(
        'allocation_project_id', default='', max_length=255,
        help="""
The id of the project that owns the allocations of preemptible servers in
Placement, instead of the project of the server. If Nova counts cores and RAM
from Placement (``[quota]count_usage_from_placement``, or unified limits),
preemptible servers then do not use up the quota of their projects. Create a
project for this in which nobody boots servers. Outside of Placement servers
keep their project.

It needs ``enforce_normal``, and with ``driver = options`` also
``normal_vcpus`` and ``normal_memory_mb``; without them the scheduler does not
start. Otherwise users could resize preemptible servers to normal flavors
beyond Nova's quota, which does not see such a resize as an increase.

Empty, the default, leaves allocations with the project of the server, as in
Nova.
"""),
    cfg.ListOpt(
        'restored_resources', default=[],
        item_type=types.String(choices=('VCPU', 'MEMORY_MB', 'DISK_GB')),
        help="""
Resource classes that the scheduler claims for preemptible flavors by their
size (vCPUs, RAM, disk), although their extra specs set the class to 0, such as
``resources:VCPU=0``.

With unified limits Nova's API checks the extra specs, so that servers of such
a flavor do not count towards Nova's limits. List a class only when no
``nova-scheduler`` runs any more: it would place servers of such a flavor
without allocating the class. Empty by default, so that extra specs have the
same meaning as in Nova.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
