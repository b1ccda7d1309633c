# SPDX-License-Identifier: Apache-2.0

"""Options of [preemption]: policy of evictions, and calls of Nova."""

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg
from oslo_utils import strutils

GROUP = 'preemption'

TIMEOUT_S = 60

OPERATIONS = ('create', 'resize', 'cold_migrate', 'live_migrate', 'unshelve',
              'evacuate')

#: What makes servers preemptible beside our extra spec, see ``marks``.
HINT = 'hint'


class Marks(cfg.types.List):
    """A list of marks; true, a value of the former allow_hint, is "hint"."""

    def __init__(self):
        super().__init__(cfg.types.String(choices=[HINT, 'lifecycle']))

    def __call__(self, value):
        try:
            return [HINT] if strutils.bool_from_string(value, True) else []
        except ValueError:
            return super().__call__(value)


ACTIONS = ('delete', 'shelve', 'stop', 'migrate')

#: What one request is decided by, in the simulator as well.
DECISION_OPTS = [
    cfg.BoolOpt(
        'enabled', mutable=True, default=True,
        help="""
Whether normal servers may preempt preemptible servers. True by default, since
an operator who installs this scheduler wants that.

False makes the scheduler behave as Nova's own. Preemptions in progress are
still finished or rolled back.
"""),
    cfg.StrOpt(
        'consider', default='when_full',
        choices=[
            ('when_full', 'if no host with capacity passes the filters'),
            ('always', 'together with hosts with capacity'),
        ],
        help="""
When hosts that need victims are candidates.

``when_full``, the default, costs nothing as long as there is capacity.
``always``, as López García et al. (FGCS 2019) describe, allows lower
multipliers (``[filter_scheduler]preemption_weight_multiplier`` and
``preemption_cost_weight_multiplier``), with which a good host with cheap
victims can win over a poor host with capacity. With the default multipliers
both values choose the same host, unless hosts with capacity have failed to
build servers lately.
"""),
    cfg.StrOpt(
        'cost', default='partial_hour',
        help="""
The cost of evicting a preemptible server: the name of an entry point in the
group ``nova_preempt.cost``. The set of victims of least total cost is chosen.

* ``partial_hour``, the default as published: seconds since the server's last
  full billing period, which a provider who bills full periods does not get
  paid;
* ``count``: the same for each server, so that the fewest servers are evicted;
* ``youngest_first``: the server's uptime in seconds;
* ``oldest_first``: ten years less the server's uptime, so that few and old
  servers are evicted.
"""),
    cfg.IntOpt(
        'billing_period_s', default=3600, min=1,
        help='The billing period of the cost ``partial_hour``, in seconds. '
             'An hour is what most clouds bill, and what the published '
             'algorithm assumes.'),
    cfg.IntOpt(
        'repeat_cost_s', default=3600, min=0,
        help="""
Seconds that each earlier eviction which a server survived (it was shelved,
stopped or migrated) adds to its cost, so that the same server is not evicted
again and again.

The default, an hour, exceeds each cost of ``partial_hour`` with the default
billing period: of two servers the one with fewer evictions is evicted first.
With another ``billing_period_s`` set both to the same value. 0 ignores earlier
evictions.
"""),
    cfg.Opt(
        'marks', type=Marks(), default=[], deprecated_name='allow_hint',
        help="""
What makes a server preemptible beside the extra spec ``preemptible:enabled``:

* ``hint``: the scheduler hint ``preemptible=true``, whatever the flavor;
* ``lifecycle``: the extra spec ``lifecycle:preemptable=true`` of Watcher's
  specification, with ``lifecycle:preempt_policy`` as the action, unless the
  flavor has extra specs of nova-preempt for the same.

None by default: with flavors alone the operator decides, by flavor access, who
may use preemptible servers and at which price. Set the same value for
``nova-preempt-api``, which accepts requests of the backlog by it, the
schedulers and the engine. ``true``, as of the former ``allow_hint``, means
``hint``.
"""),
    cfg.IntOpt(
        'minimum_runtime_s', mutable=True, default=0, min=0,
        help="""
Seconds that a preemptible server runs before it may be evicted. The flavor
extra spec ``preemptible:minimum_runtime_s`` can only lengthen it. 0, the
default, promises no run time: normal servers have priority.
"""),
    cfg.StrOpt(
        'honored_locks', default='admin',
        choices=[
            ('admin', 'locks of administrators'),
            ('all', 'locks of administrators and of owners of servers'),
        ],
        help="""
Locks (``openstack server lock``) that protect a preemptible server from
eviction.

``admin`` by default: with ``all``, any member of a project can protect
preemptible servers for ever at their low price, unless Nova's policy
``os_compute_api:os-lock-server:lock`` forbids it. As in Nova, an administrator
whose token is for the project of the server locks it as its owner.
"""),
    cfg.StrOpt(
        'headroom', default='',
        help="""
Capacity that ``nova-preempt-engine`` keeps free in the whole cloud by evicting
preemptible servers ahead of demand, so that normal servers need not wait for
notices: a list of ``CLASS:AMOUNT``, in the unit of the resource class, or
``CLASS:PERCENT%``, such as ``VCPU:5%,MEMORY_MB:65536``. The metadata key
``preemptible:headroom`` of an aggregate sets a headroom for its hosts. Empty,
the default, keeps nothing free: preemptible servers use all idle capacity.

The scheduler places, and the engine restores, no preemptible server that would
use this capacity; set the same value for all of them. Their data may be 5 s
old, so that concurrent schedulers may place a few servers too many, which the
engine evicts again.
"""),
    cfg.IntOpt(
        'maximum_runtime_s', mutable=True, default=0, min=0,
        help="""
Seconds after which ``nova-preempt-engine`` gives a preemptible server notice
and evicts it even without demand. The flavor extra spec
``preemptible:maximum_runtime_s`` overrides it. 0, the default, is no limit:
demand alone ends servers. 86400, a day, is what public clouds have set.
"""),
    cfg.IntOpt(
        'notice_s', mutable=True, default=30, min=0,
        help="""
Seconds between the notice to a preemptible server and its eviction. The guest
reads the notice in its metadata, under the key ``preemption``. A server that
powers off earlier is evicted at once. The preempting request waits until then.
The flavor extra spec ``preemptible:notice_s`` overrides it, within
``minimum_notice_s`` and ``maximum_notice_s``.

The default, 30, is the shortest notice that public clouds give.
"""),
    cfg.IntOpt(
        'minimum_notice_s', mutable=True, default=0, min=0,
        help='The shortest notice that a flavor may give, in seconds. A '
             'shorter ``preemptible:notice_s`` is raised to it. 0, the '
             'default, allows flavors without notice, for work that needs '
             'none.'),
    cfg.IntOpt(
        'maximum_notice_s', default=300, min=0,
        help="""
The longest notice that a flavor may give, in seconds. A longer
``preemptible:notice_s`` is cut to it. Five minutes, the default, are more than
public clouds give.

Nova's conductor waits ``[DEFAULT]long_rpc_timeout`` (1800 s) for the
scheduler, including this notice and ``termination_timeout_s``. With the
defaults of Nova and ``termination_timeout_s`` this may be 1560 at most. If it
is too long the scheduler does not start.
"""),
    cfg.ListOpt(
        'actions', mutable=True, default=['delete', 'shelve', 'stop'],
        item_type=cfg.types.String(choices=ACTIONS),
        help="""
Actions by which preemptible servers may be evicted. The flavor extra spec
``preemptible:action`` selects one of them. A flavor without the extra spec, or
with an action that is not listed, gets the first listed action that is not
``migrate``.

* ``delete``: the server is deleted;
* ``shelve``: it is shelved and offloaded, and can be unshelved;
* ``stop``: it is stopped and locked, keeps its disk, and is deleted after
  ``stop_retention_s``. For servers with NUMA cells, pinned CPUs, PCI devices
  or virtual GPUs, which Nova does not release when a server stops, the next
  listed action is used;
* ``migrate``: it is live-migrated to a host with capacity. If that fails, the
  first other action is used. If ``migrate`` is listed first, each victim is
  migrated whatever its flavor selects, and the action of its flavor is used if
  that fails.

By default all but ``migrate``, which needs computes that can live-migrate and
takes longer than ending a server.
"""),
    cfg.IntOpt(
        'migrate_timeout_s', mutable=True, default=60, min=1,
        help='Seconds that the live migration of a victim may take, after '
             'its notice. Then the action that ends the server is used '
             'instead. A minute, the default, is enough for a small server '
             'and delays the preempting request little.'),
    cfg.IntOpt(
        'stop_retention_s', mutable=True, default=86400, min=0,
        help='Seconds that a stopped victim is kept before it is deleted. A '
             'day, the default, lets its owner save the contents of its '
             'disk.'),
    cfg.ListOpt(
        'preempting_operations', mutable=True, default=list(OPERATIONS),
        item_type=cfg.types.String(choices=OPERATIONS),
        help="""
Operations on normal servers that may preempt. All by default, since normal
servers have priority over the use of idle capacity. A rebuild never preempts,
since the server stays on its host.
"""),
    cfg.IntOpt(
        'max_waiting_requests', default=32, min=0,
        help="""
The most requests that wait at once in each worker of each scheduler: for the
notice of victims, for capacity that is being released, or for hosts that are
being powered on. A multi-create counts once. Further requests may evict only
servers without notice; if that does not help, they fail at once with
NoValidHost and can be sent again later. 0 lets no request wait.

Each waiting request holds a thread of the scheduler and a thread of the
conductor. The default, 32, is half of ``[DEFAULT]executor_thread_pool_size``
(64), so that requests that find free capacity always find a thread. Raise
both, in nova-conductor too, if more requests have to wait; or set a
``headroom``, with which most requests find free capacity.
"""),
    cfg.IntOpt(
        'termination_timeout_s', default=120, min=1,
        help="""
Seconds after the notice that the scheduler waits for victims to be gone from
their host. The allocations of a victim that is still there are then restored,
and another host is tried. Two minutes, the default, are enough for most
deletions and for shelving small servers. ``maximum_notice_s`` explains the
upper limit.
"""),
    cfg.ListOpt(
        'notification_topics', default=['notifications'],
        help='Topics of the notifications ``preemption.*``. The default is '
             'the topic of Nova and most consumers. The driver in '
             '``[oslo_messaging_notifications]`` sends them; it is unset by '
             'default, so that none are sent.'),
    cfg.PortOpt(
        'metrics_port', default=0,
        help='Port on which Prometheus metrics are served over HTTP. 0, the '
             'default, serves none, since the port has no authentication.'),
    cfg.StrOpt(
        'metrics_address', default='127.0.0.1',
        help='Address on which Prometheus metrics are served. By default '
             'only this host can read them.'),
    cfg.IntOpt(
        'project_budget', mutable=True, default=0, min=0,
        help="""
The most preemptible servers of a project that are being evicted at once, so
that a project does not lose all of them together. Evictions by all schedulers
and ``nova-preempt-engine`` count, see also ``budget_window_s``. If the budget
of a project is used up, victims of other projects or on other hosts are
chosen; a request that finds none fails with NoValidHost. The end of a server's
maximum run time counts, but is never delayed.

0, the default, is no limit: normal servers have priority.
"""),
    cfg.IntOpt(
        'group_budget', mutable=True, default=0, min=0,
        help="""
The most preemptible servers of a Nova server group that are being evicted at
once, since the servers of a group commonly serve one purpose. It works as
``project_budget``. 0, the default, is no limit.
"""),
    cfg.IntOpt(
        'budget_window_s', mutable=True, default=0, min=0,
        help="""
Seconds after its eviction that a server still counts for ``project_budget``
and ``group_budget``, in which its owner can replace it. A migrated server does
not count. 0, the default, counts only evictions in progress.
"""),
]

_MULTI_CREATE_OPTS = [
    cfg.StrOpt(
        'multi_create_score', default='off',
        choices=[
            ('off', 'Nova chooses a host for one server after another'),
            ('dp', ('the dot product of the request and the free capacity of '
                    'the host, over resource classes, so that their shapes '
                    'match')),
            ('ml', ('the load of the host, so that large free capacity '
                    'remains on others')),
            ('weights', ('the sum of Nova\'s weighers before any of the '
                         'servers is placed')),
        ],
        help="""
Score by which the hosts of a multi-create (``openstack server create --min
40``) are chosen for all servers together, among the hosts that pass Nova's
filters. ``off``, the default, leaves the choice to Nova's weighers, one server
after another.

A joint choice puts the servers of an affinity group on a host with capacity
for all of them; Nova takes the best host for the first server, and fails if
the others do not fit there. If no joint choice is possible, Nova's weighers
choose.

With ``weights`` the best host gets as many servers as it has capacity for,
then the next host: hosts are weighed once. Nova weighs them again after each
server, so that its default weights spread servers over hosts.

All servers are claimed in one transaction of Placement. They are claimed one
by one if it fails, since another request was faster on one of the hosts, or if
they are preemptible and ``[preemption]headroom`` is set.

It needs ``nova-preempt[batch]`` for the scheduler.
"""),
]

OPTS = DECISION_OPTS + _MULTI_CREATE_OPTS


def list_opts():
    """Return our options, and keystoneauth's options for credentials."""
    return (OPTS + _session_opts() +
            ks_loading.get_auth_common_conf_options() +
            ks_loading.get_auth_plugin_conf_options('password') +
            _adapter_opts())


def _session_opts():
    opts = ks_loading.get_session_conf_options()
    for opt in opts:
        if opt.dest == 'timeout':
            opt.default = TIMEOUT_S
            opt.help = """
Timeout of calls of Nova's API and Keystone, in seconds: for the connection,
and for each part of the response. A minute, the default, is the usual timeout
of load balancers. keystoneauth has none by default, so that a server that
accepts a connection and stays silent would hold a thread for ever. A call that
timed out may have succeeded, which is checked before it is repeated.
"""
    return opts


def _adapter_opts():
    opts = ks_loading.get_adapter_conf_options(include_deprecated=False)
    # The API version is something the code knows about.
    opts = [opt for opt in opts
            if opt.dest not in ('version', 'min_version', 'max_version')]
    cfg.set_defaults(opts, service_type='compute',
                     valid_interfaces=['internal', 'public'])
    return opts


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
    conf.register_opts(_session_opts(), group=GROUP)
    ks_loading.register_auth_conf_options(conf, GROUP)
    conf.register_opts(_adapter_opts(), group=GROUP)
