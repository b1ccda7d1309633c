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
The source of the limits of projects that the scheduler enforces in addition to
Nova's quota.

``none``, the default, leaves it all to Nova, whose quota counts preemptible
servers like others. With ``options`` the options below are the limits. With
``oslo_limit`` they are those in Keystone of the names ``preemptible_servers``,
``preemptible_vcpus`` and ``preemptible_memory_mb``, and with
``enforce_normal`` also ``normal_servers``, ``normal_vcpus`` and
``normal_memory_mb``; as in Nova, a name that has no registered limit has the
limit 0. ``[oslo_limit]`` has the credentials and the endpoint, as for Nova's
unified limits.
"""),
    cfg.IntOpt(
        'servers', default=-1, min=-1,
        help='How many preemptible servers a project may have. -1, the '
             'default, is no limit, since they only take what is idle.'),
    cfg.IntOpt(
        'vcpus', default=-1, min=-1,
        help='How many vCPUs the flavors of the preemptible servers of a '
             'project may have together. -1, the default, is no limit.'),
    cfg.IntOpt(
        'memory_mb', default=-1, min=-1,
        help='How much RAM the flavors of the preemptible servers of a '
             'project may have together, in MiB. -1, the default, is no '
             'limit.'),
    cfg.BoolOpt(
        'enforce_normal', default=False,
        help="""
Whether the normal servers of a project are bounded here too.

Nova's API checks its quota before anybody is scheduled and cannot tell the
two kinds apart: to let preemptible servers in beyond a project's normal quota
its limits must be raised, and with this they still are not open to normal
servers. False, the default, leaves normal servers to Nova's quota alone and
costs their requests nothing.
"""),
    cfg.IntOpt(
        'normal_servers', default=-1, min=-1,
        help='With ``enforce_normal``: how many normal servers a project may '
             'have. -1, the default, is no limit but Nova\'s own.'),
    cfg.IntOpt(
        'normal_vcpus', default=-1, min=-1,
        help='With ``enforce_normal``: how many vCPUs the flavors of the '
             'normal servers of a project may have together. -1, the '
             'default, is no limit but Nova\'s own.'),
    cfg.IntOpt(
        'normal_memory_mb', default=-1, min=-1,
        help='With ``enforce_normal``: how much RAM the flavors of the '
             'normal servers of a project may have together, in MiB. -1, the '
             'default, is no limit but Nova\'s own.'),
    cfg.MultiOpt(
        'project_limits', item_type=types.Dict(),
        help="""
With ``driver = options``: limits of a single project, in place of those
above. One line a project, such as
``project_limits = project_id:0f3b7c...,servers:50,vcpus:100``; the names are
``project_id`` and those of the six limits above, in their units. What a line
does not name is as above. Empty by default: all projects are alike.
"""),
    cfg.StrOpt(
        'allocation_project_id', default='', max_length=255,
        help="""
The id of the project under which the allocations of preemptible servers stand
in Placement, in place of the project that they belong to.

Where Nova counts cores and RAM from Placement
(``[quota]count_usage_from_placement``, or unified limits) preemptible servers
then do not use up these quotas of their projects. It should be a project of
its own in which nobody boots servers. It takes ``enforce_normal``, and with
``driver = options`` also ``normal_vcpus`` and ``normal_memory_mb``, without
which a scheduler does not start: to Nova, who resizes such a server to a
normal flavor of the same size asks for nothing more.

Empty, the default, leaves allocations with the project that the server
belongs to. Which project it belongs to, for everybody but Placement, never
changes.
"""),
    cfg.ListOpt(
        'restored_resources', default=[],
        item_type=types.String(choices=('VCPU', 'MEMORY_MB', 'DISK_GB')),
        help="""
The resource classes that the scheduler claims as a preemptible flavor's size
says although its extra specs ask for none (``resources:VCPU=0``).

With unified limits Nova's API checks what the extra specs ask for, so that
such a flavor is not held against the limits of normal servers. Never name a
class here while a ``nova-scheduler`` may still run: it would place servers of
such a flavor without any space of that class. Empty by default: extra specs
mean what they say.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
