# SPDX-License-Identifier: Apache-2.0
"""Options of [preemption]: how many servers may end at once."""

from oslo_config import cfg

OPTS = [
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
