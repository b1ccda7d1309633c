# SPDX-License-Identifier: Apache-2.0
"""[backlog]: requests for servers that wait until there is room."""

from oslo_config import cfg

GROUP = 'backlog'

OPTS = [
    cfg.BoolOpt(
        'enabled', default=False, mutable=True,
        help="""
Whether users may leave requests for servers with ``nova-preempt-api`` that
``nova-preempt-engine`` starts in their name when there is room. For that the
API makes a trust of each user's token, with which the engine acts as the user
for as long as the request is open: so it is off, the default, until an
operator wants that.

While it is false no request is taken and none is started. Servers that were
started stay, requests are kept as they are, and what was asked of Nova before
is still cleared up once it is true again. Set it alike for the API and the
engine.
"""),
    cfg.StrOpt(
        'order', default='fifo',
        help="""
Which request comes first: the name of an entry point in the group
``nova_preempt.order``.

* ``fifo``, the default: the one that has waited longest;
* ``fair_share``: the one of the project that has the least, by dominant
  resource fairness, then the one that has waited longest;
* ``promethee``: the one with the highest priorities, by PROMETHEE II, with
  waiting time as a fifth one;
* ``qos``: normal requests, then the one of a class whose promise is nearest to
  being broken, the more important class first where both are about to be; it
  needs ``[classes]enabled``.

``promethee`` and ``qos`` need ``nova-preempt[classes]``.
"""),
    cfg.DictOpt(
        'priority_weights', default={},
        help='Of ``promethee``: how much each of the priorities time, '
             'reputation, cores and redundancy counts, as in '
             '"time:2,cores:0". Whole numbers; those that are not named, all '
             'by default, count 1.'),
    cfg.IntOpt(
        'patience_s', default=86400, min=0,
        help='Of ``promethee``: who has waited for so much longer than '
             'another, in seconds, comes before it whatever their '
             'priorities. A day, the default, lets best effort wait through '
             'the hours of most use. 0: priorities alone count, and best '
             'effort may wait for ever.'),
    cfg.BoolOpt(
        'ladders', default=False,
        help="""
Whether a request may name a ladder of flavors (their extra spec
``preemptible:ladder``) and priorities in place of a flavor and a number. It
then gets a number of cores by what is idle and who else waits, and copies on
distinct hosts by its redundancy.
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
Whether the requests that start in a pass are placed together, so that the
first does not take the host that another needs, and how. Their servers are
then started on the hosts that were found for them, as long as those have room
and pass the filters of Nova; where they do not, Nova chooses as ever. Off, the
default, lets Nova's weighers choose each host.

It needs ``nova-preempt[batch]`` for the engine, and ``nova-preempt-scheduler``
with the same database for all requests; ``nova-scheduler`` would start servers
where it likes.
"""),
    cfg.FloatOpt(
        'pass_interval_s', default=5, min=0.1, mutable=True,
        help="""
How often the engine looks what has become of open requests and who can start,
in seconds. Five, the default, is little beside the time that a server takes
to start. A look costs one query of the database, and one call of Nova's API
for each request that has servers.
"""),
    cfg.IntOpt(
        'max_requests_per_project', default=100, min=-1, mutable=True,
        help='How many requests a project may have that are not closed. It '
             'bounds what one project can make each look of the engine cost. '
             'A hundred, the default, keeps that small with a hundred '
             'projects. -1 is no limit.'),
    cfg.IntOpt(
        'max_created_per_day', default=1000, min=-1, mutable=True,
        help='How many requests a project may leave within 24 hours, those '
             'that it has cancelled among them. It bounds the rows of the '
             'database that one project can fill until they are deleted '
             '(``[reservation]retention_days``). A thousand, the default, is '
             'one in a minute and a half, all day. Trusts that wait to be '
             'deleted, as those that a change has replaced, count as well. -1 '
             'is no limit.'),
    cfg.IntOpt(
        'max_count', default=100, min=1, mutable=True,
        help='How many servers one request may ask for. Nova makes all '
             'servers of a call at once, which keeps one of its conductors '
             'busy: a hundred, the default, takes it seconds.'),
    cfg.StrOpt(
        'secret_key_file', default='',
        help="""
File with the keys that encrypt the password, user data and files of servers
(``adminPass``, ``user_data``, ``personality``) in the database while a request
waits; they are deleted when it is closed. The API and the engine read the same
keys, one a line: the first encrypts, all decrypt. A key is 32 random bytes as
URL-safe base64; ``head -c 32 /dev/urandom | base64 | tr +/ -_`` prints one. A
new key goes first; an old one may go after ``nova-preempt-manage backlog
rotate-keys``. The file is read each time that a key is needed.

Empty, the default, refuses requests that have any of these: nothing secret is
written down in clear.
"""),
    cfg.IntOpt(
        'hold_after_s', default=3600, min=0, mutable=True,
        help='How long a request has waited, in seconds, before hosts are '
             'kept free for it: smaller ones would take what becomes free '
             'there for ever. At most a quarter of the hosts is kept, half of '
             'that for one project, for six hours at a time, or up to a day '
             'while they get nearer to enough. When they have been kept for '
             'a request for as long again, it comes first in every order. An '
             'hour, the default, lets most pass first.'),
    cfg.IntOpt(
        'ask_timeout_s', default=60, min=1, mutable=True,
        help="""
How long the answer of Nova's API to a boot is waited for, in seconds.

What has not been answered may still have arrived, so for three times as long
the servers are looked for by their tag before the request is tried again. A
minute, the default, is what load balancers usually wait for Nova; more than
that must not pass there.

Keystone is waited for by ``[preemption]timeout``.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
