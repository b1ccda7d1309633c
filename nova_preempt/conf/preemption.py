# SPDX-License-Identifier: Apache-2.0

"""Options of [preemption]: policy of evictions, and calls of Nova."""

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

GROUP = 'preemption'

TIMEOUT_S = 60

OPERATIONS = ('create', 'resize', 'cold_migrate', 'live_migrate', 'unshelve',
              'evacuate')

ACTIONS = ('delete', 'shelve', 'stop', 'migrate')

#: What one request is decided by, in the simulator as well.
DECISION_OPTS = [
    cfg.BoolOpt(
        'enabled', mutable=True, default=True,
        help="""
Whether normal servers may preempt preemptible servers; true by default.

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

With the default multipliers both choose the same host, unless hosts with
capacity have failed to build servers lately; ``when_full``, the default, costs
nothing as long as there is capacity.
``always``, which is what López García et al. (FGCS 2019)
describe, lets an operator who lowers
``[filter_scheduler]preemption_weight_multiplier`` and
``preemption_cost_weight_multiplier`` weigh a good host with cheap victims
against a poor host with capacity.
"""),
    cfg.StrOpt(
        'cost', default='partial_hour',
        help="""
The cost of evicting a preemptible server: the name of an entry point in the
group ``nova_preempt.cost``. The set of victims of least total cost is chosen.

* ``partial_hour``: seconds since its last full billing period, which a
  provider who bills full periods does not get paid;
* ``count``: the same for each server, so that fewest servers are evicted;
* ``youngest_first``: its uptime in seconds;
* ``oldest_first``: ten years less its uptime, so that few and old servers are
  evicted.
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
    cfg.BoolOpt(
        'allow_hint', default=False,
        help="""
Whether the scheduler hint ``preemptible=true`` makes a server preemptible,
whatever its flavor.

Off by default: with flavors alone the operator decides, by flavor access, who
may use preemptible servers and at which price. Set the same value for
``nova-preempt-api``, which accepts requests of the backlog by it, and the
schedulers.
"""),
    cfg.IntOpt(
        'minimum_runtime_s', mutable=True, default=0, min=0,
        help="""
Seconds that a preemptible server runs before it may be evicted.
The flavor extra spec ``preemptible:minimum_runtime_s`` can only
lengthen it. 0, the default, gives no such promise.
"""),
    cfg.StrOpt(
        'honored_locks', default='admin',
        choices=[
            ('admin', 'those of administrators'),
            ('all', 'those of owners of servers as well'),
        ],
        help="""
Whose locks (``openstack server lock``) protect a preemptible server from
eviction.

With ``all`` any member of a project can keep preemptible servers for ever, at
the price of preemptible ones, unless the policy of Nova
(``os_compute_api:os-lock-server:lock``) forbids it. So by default only those
of administrators count. As in Nova, an administrator who locks a server of
the project that the token is for does so as its owner.
"""),
    cfg.StrOpt(
        'headroom', default='',
        help="""
Capacity that ``nova-preempt-engine`` keeps free in the whole cloud by evicting
preemptible servers ahead of demand, so that normal servers need not wait for
notices: a list of ``CLASS:AMOUNT`` or ``CLASS:PERCENT%``, such as
``VCPU:5%,MEMORY_MB:65536``. An aggregate may have one of its own in its
metadata, ``preemptible:headroom``. Empty, the default, keeps nothing free:
idle capacity is put to use.

The scheduler places, and the engine restores, no preemptible server that would
use this capacity; set the same value for all of them. The data may be 5 s
old, so that concurrent schedulers may place a few servers too many, which are
evicted again.
"""),
    cfg.IntOpt(
        'maximum_runtime_s', mutable=True, default=0, min=0,
        help="""
Seconds after which ``nova-preempt-engine`` gives a preemptible server notice
and evicts it even without demand. The flavor extra spec
``preemptible:maximum_runtime_s`` overrides it. 0, the default, sets no such
time; 86400 is the classic product of a day.
"""),
    cfg.IntOpt(
        'notice_s', mutable=True, default=30, min=0,
        help="""
Seconds between the notice to a preemptible server and its eviction. The guest
finds the notice in its metadata, under the key ``preemption``; a server that
is powered off earlier is evicted at once. The preempting request waits as
long. The flavor extra spec ``preemptible:notice_s`` overrides it.

The default is the shortest notice that public clouds give.
"""),
    cfg.IntOpt(
        'minimum_notice_s', mutable=True, default=0, min=0,
        help='The shortest notice that a flavor may give, in seconds. A '
             'shorter ``preemptible:notice_s`` counts as this. 0 allows a '
             'flavor for work that needs none.'),
    cfg.IntOpt(
        'maximum_notice_s', default=300, min=0,
        help="""
The longest notice that a flavor may give, in seconds. A longer
``preemptible:notice_s`` counts as this. Together with
``termination_timeout_s`` it must be below Nova's ``long_rpc_timeout``
(1800 s), within which the conductor waits for the scheduler: a scheduler does
not start where it is longer.
"""),
    cfg.ListOpt(
        'actions', mutable=True, default=['delete', 'shelve', 'stop'],
        item_type=cfg.types.String(choices=ACTIONS),
        help="""
Actions by which preemptible servers may be evicted. A flavor
chooses with the extra spec ``preemptible:action``; one that chooses nothing,
or what is not in this list, gets the default: the first of the list that is
not ``migrate``.

* ``delete``: the server is deleted;
* ``shelve``: it is shelved and offloaded, and can be unshelved;
* ``stop``: it is stopped and locked, keeps its disk, and is deleted after
  ``stop_retention_s``. Servers with NUMA cells, pinned processors, PCI devices
  or virtual GPUs, which Nova does not free of stopped servers, meet the next
  action of this list instead;
* ``migrate``: it is live-migrated to a host with capacity; the default action
  is taken only if that fails. As the first of the list it is tried on every
  victim, whatever its flavor says; what fails to move then meets its own
  action.

``migrate`` is not there by default: it needs computes that can live-migrate,
and takes longer than an end.
"""),
    cfg.IntOpt(
        'migrate_timeout_s', mutable=True, default=60, min=1,
        help='How long a live migration of a victim may take before its own '
             'action is taken instead, in seconds. It is waited for after '
             'the notice.'),
    cfg.IntOpt(
        'stop_retention_s', mutable=True, default=86400, min=0,
        help='How long a stopped victim is kept before it is deleted, in '
             'seconds. A day lets its owner save what is on its disk.'),
    cfg.ListOpt(
        'preempting_operations', mutable=True, default=list(OPERATIONS),
        item_type=cfg.types.String(choices=OPERATIONS),
        help="""
The operations of normal servers that may preempt. A rebuild never does, since
the server keeps its host. All others do by default, since normal servers have
priority over the use of idle capacity.
"""),
    cfg.IntOpt(
        'max_waiting_requests', default=32, min=0,
        help="""
How many requests may wait at once in each worker of each scheduler, four times
as many on a host with 4 workers: for the notice of preemptible servers, for
space that others are giving up already, or for hosts that are being powered
on. There is no bound for the cloud as a whole. Those that come when so many
wait may only end servers whose notice is 0 s; where that does not help they
get NoValidHost at once, and can be sent again later. A request for many
servers counts once.

Each one that waits holds a thread of the scheduler and one of the conductor
that has asked for it. The default is half of ``[DEFAULT]
executor_thread_pool_size``, 64: the other half is left for requests that find
room at once. Raise both, in nova-conductor too, if more have to wait; a
``headroom`` makes most find room at once instead. 0 has nobody wait.
"""),
    cfg.IntOpt(
        'termination_timeout_s', default=120, min=1,
        help="""
How long to wait for victims to be gone from their host, in seconds. What is
not gone by then gets its space back and another host is tried. It must be
well below Nova's ``long_rpc_timeout`` (1800 s), within which the conductor
waits for the scheduler.
"""),
    cfg.ListOpt(
        'notification_topics', default=['notifications'],
        help='The topics of the notifications ``preemption.*``. They are sent '
             'by the driver in ``[oslo_messaging_notifications]``, by default '
             'none. The topic is the one that most consumers listen to.'),
    cfg.PortOpt(
        'metrics_port', default=0,
        help='The port on which Prometheus metrics are served over HTTP. 0, '
             'the default, serves none.'),
    cfg.StrOpt(
        'metrics_address', default='127.0.0.1',
        help='The address on which metrics are served. By default only this '
             'host can read them.'),
    cfg.IntOpt(
        'project_budget', mutable=True, default=0, min=0,
        help="""
How many preemptible servers of one project may be ending at once, so that
nobody loses all at a time. Those of all schedulers and of
``nova-preempt-engine`` count together; see also ``budget_window_s``. Where it
is used up, other victims or another host are chosen, and a request that finds
none gets NoValidHost. A server whose maximum run time is over counts, but ends
whatever the budget says: it was never promised more.

0, the default, sets no limit: normal servers go first.
"""),
    cfg.IntOpt(
        'group_budget', mutable=True, default=0, min=0,
        help="""
The same for the preemptible servers of one Nova server group, which commonly
serve one purpose together. 0, the default, sets no limit.
"""),
    cfg.IntOpt(
        'budget_window_s', mutable=True, default=0, min=0,
        help="""
For how long after its end a server still counts for ``project_budget`` and
``group_budget``, in seconds: the time in which its owner can replace it. One
that was migrated has not ended. With 0, the default, only those count that
are ending now.
"""),
]

_MULTI_CREATE_OPTS = [
    cfg.StrOpt(
        'multi_create_score', default='off',
        choices=[
            ('off', 'Nova chooses a host for one server after another'),
            ('dp', ('where what is asked for is most like what is free: the '
                    'product of both, summed up over resource classes')),
            ('ml', 'the fullest hosts that do, so that large rooms stay'),
            ('weights', ('the hosts that Nova\'s weighers like best before '
                         'any of the servers is placed')),
        ],
        help="""
Where the servers of one request go (``openstack server create --min 40``):
off, the default, where Nova's weighers say, one after another. Otherwise one
decision is made for all of them, among the hosts that pass Nova's filters.

Servers of one affinity group then go to a host that has room for all of them.
Nova takes the best host for the first one, and fails if the others do not fit
there. Where no such decision is possible, Nova's weighers choose.

With weights the best host takes as many servers as it has room for, then the
next: all are weighed once, while Nova weighs again after each server, so that
by its default weights servers spread over hosts.

All servers are then claimed in one transaction of Placement. Where it refuses,
since others were faster on one of the hosts, they are claimed one by one, as
they are where ``[preemption]headroom`` has to be left free.

It needs ``nova-preempt[batch]`` for the scheduler.
"""),
]

OPTS = DECISION_OPTS + _MULTI_CREATE_OPTS


def list_opts():
    """Ours, and keystoneauth's for the credentials."""
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
How long Nova's API and Keystone are waited for, in seconds: to connect, and
again for each piece of an answer. keystoneauth has no limit by default, and a
server that accepts a connection and stays silent would hold a thread without
end. What was not answered may have been done: it is looked at before it is
asked for again. A minute, the default, is what load balancers usually wait.
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
