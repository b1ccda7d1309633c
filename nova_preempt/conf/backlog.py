# SPDX-License-Identifier: Apache-2.0
"""Options of [backlog]: requests for servers that wait for capacity."""

from oslo_config import cfg

GROUP = 'backlog'

OPTS = [
    cfg.BoolOpt(
        'enabled', default=False, mutable=True,
        help="""
Whether users may create requests for servers with ``nova-preempt-api``, which
``nova-preempt-engine`` starts in their name when there is capacity. The API
creates a trust from each user's token, with which the engine acts as the user
while the request is open. Off by default, since an operator has to agree to
that.

While it is false, no request is accepted and none is started. Running servers
and stored requests are kept, and pending calls to Nova are cleaned up once it
is true again. Set the same value for the API and the engine.
"""),
    cfg.StrOpt(
        'order', default='fifo',
        help="""
The order in which requests start: the name of an entry point in the group
``nova_preempt.order``.

* ``fifo``, the default: longest wait first;
* ``fair_share``: the project with the smallest dominant share first (dominant
  resource fairness), then longest wait first;
* ``promethee``: highest priorities first, by PROMETHEE II, with waiting time
  as a fifth criterion;
* ``qos``: normal requests first, then requests of classes, nearest to a broken
  promise first; among urgent requests the more important class first. It
  needs ``[classes]enabled``.

``promethee`` and ``qos`` need ``nova-preempt[classes]``.
"""),
    cfg.DictOpt(
        'priority_weights', default={},
        help='Weights of the priorities time, reputation, cores and '
             'redundancy in the order ``promethee``, such as '
             '"time:2,cores:0". Whole numbers without a unit; priorities '
             'that are not named have the weight 1, by default all.'),
    cfg.IntOpt(
        'patience_s', default=86400, min=0,
        help='The difference of waiting times, in seconds, from which the '
             'order ``promethee`` puts the longer wait first whatever the '
             'priorities. A day, the default, makes best-effort requests '
             'wait through peak hours only. 0 ignores waiting times, so that '
             'best-effort requests may wait for ever.'),
    cfg.BoolOpt(
        'ladders', default=False,
        help="""
Whether a request may name a ladder of flavors (their extra spec
``preemptible:ladder``) and priorities instead of a flavor and a count. Idle
capacity and other waiting requests then determine its number of cores, and its
redundancy the number of copies on distinct hosts. Off by default: flavors need
the extra spec first.
"""),
    cfg.StrOpt(
        'batch_mode', default='off',
        choices=[
            ('off', 'one by one, each on the host that Nova chooses'),
            ('greedy', 'one by one, each on the host with the best score'),
            ('exact', ('by an integer program; what it does not settle in '
                       'two fifths of pass_interval_s goes one by one')),
        ],
        help="""
How the requests that start in a pass are placed together, so that one request
does not use the host that another needs. Their servers start on the chosen
hosts as long as these have capacity and pass Nova's filters; otherwise Nova
chooses the host. Off, the default, lets Nova's weighers choose each host.

It needs ``nova-preempt[batch]`` for the engine, and ``nova-preempt-scheduler``
with the same database for all requests; ``nova-scheduler`` would start servers
where it likes.
"""),
    cfg.FloatOpt(
        'pass_interval_s', default=5, min=0.1, mutable=True,
        help="""
Seconds between two passes of the engine, which check open requests and start
waiting ones. Five, the default, is short compared to the start of a server. A
pass costs one database query, and one call of Nova's API for each request
that has servers.
"""),
    cfg.IntOpt(
        'max_requests_per_project', default=100, min=-1, mutable=True,
        help='The most open requests of a project. It bounds the cost of '
             'each pass of the engine. A hundred, the default, keeps that '
             'small with a hundred projects. -1 is no limit.'),
    cfg.IntOpt(
        'max_created_per_day', default=1000, min=-1, mutable=True,
        help='The most requests that a project may create within 24 hours, '
             'including cancelled ones. It bounds the database rows of a '
             'project until they are deleted '
             '(``[reservation]retention_days``). A thousand, the default, is '
             'one in 86 seconds. Trusts that wait to be deleted count as '
             'well. -1 is no limit.'),
    cfg.IntOpt(
        'max_count', default=100, min=1, mutable=True,
        help='The most servers of one request. Nova creates all servers of '
             'a call at once, which occupies a conductor: for a hundred, the '
             'default, for seconds.'),
    cfg.StrOpt(
        'secret_key_file', default='',
        help="""
File with the keys that encrypt secrets of webhooks, and the password, user
data and files of servers (``adminPass``, ``user_data``, ``personality``) while
a request waits, in the database. All services but schedulers need the same
keys, one per line: the first encrypts, all decrypt. A key is 32 random bytes
as URL-safe base64; ``head -c 32 /dev/urandom | base64 | tr +/ -_`` prints one.
To rotate keys, insert a new key as the first line, run ``nova-preempt-manage
backlog rotate-keys``, and remove the old key. The file is read each time that
a key is needed.

Empty, the default, refuses webhooks and requests with such secrets: they are
never stored in clear text.
"""),
    cfg.IntOpt(
        'hold_after_s', default=3600, min=0, mutable=True,
        help='Seconds that a request waits before hosts are kept free for '
             'it, since smaller requests could use freed capacity for ever. '
             'At most a quarter of the hosts is kept, half of that for one '
             'project, for six hours at a time, or up to a day while the '
             'free capacity grows. After hosts were kept for as long again, '
             'the request comes first in every order. An hour, the default, '
             'lets most requests start before.'),
    cfg.IntOpt(
        'ask_timeout_s', default=60, min=1, mutable=True,
        help="""
Seconds to wait for the response of Nova's API to a boot.

A call without response may have succeeded, so its servers are searched for by
tag for three times as long before the request is retried. A minute, the
default, is the usual timeout of load balancers, which must not be longer.

Calls of Keystone use ``[preemption]timeout``.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
