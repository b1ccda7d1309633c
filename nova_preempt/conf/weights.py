# SPDX-License-Identifier: Apache-2.0

"""The multipliers of our weighers, in [filter_scheduler] like Nova's own."""

from oslo_config import cfg

GROUP = 'filter_scheduler'

OPTS = [
    cfg.FloatOpt(
        'kw_ranking_weight_multiplier', default=1.0,
        help="""
Multiplier of ``KWRankingWeigher``: how much a host is preferred that does
more with a watt, as ``[energy]ranking`` says.

No unit; the weight of a host is between 0 (the worst of those that are
compared) and 1 (the best). The default is that of Nova's own weighers of RAM,
disk and CPU, which together spread servers over all hosts: set it far above
their sum, such as to 100, to gather servers on the frugal ones, or lower
theirs. As long as no host has figures it changes nothing. A negative number
prefers the hosts that do less. An aggregate's metadata key of the same name
overrides it for the aggregate's hosts.
"""),
    cfg.FloatOpt(
        'preemption_weight_multiplier', default=200000.0,
        help="""
Multiplier of ``PreemptionWeigher``: how much a host that has room is
preferred to a host on which preemptible servers would have to end.

No unit; it is taken off the weight of a host that needs victims. The default
is twice the default of ``preemption_cost_weight_multiplier``, so that a host
with room always wins, and less than those of the build failure and cross-cell
weighers (1 000 000), which keep their say. With 0 a host that needs victims is
only put behind by ``preemption_cost_weight_multiplier``. An aggregate's
metadata key of the same name overrides it for the aggregate's hosts.
"""),
    cfg.FloatOpt(
        'preemption_cost_weight_multiplier', default=100000.0,
        help="""
Multiplier of ``PreemptionCostWeigher``: how much a host with cheaper victims
is preferred.

No unit; the weight of a host is its rank among the costs of the hosts that
are compared, from 0 (the dearest) to 1 (the cheapest), so that it does not
matter in which unit a cost function counts. The default puts the host of
least cost first and leaves it to Nova's ordinary weighers to break ties.
An aggregate's metadata key of the same name overrides it for the aggregate's
hosts.
"""),
    cfg.FloatOpt(
        'reservation_free_time_weight_multiplier', default=10.0,
        help="""
Multiplier of ``ReservationFreeTimeWeigher``: how much a host is preferred
whose next reservation is farther away.

No unit; the weight of a host is its rank by that time among the hosts that
are compared, from 0 (the soonest) to 1 (the farthest, or none to come). The
default is more than Nova's weighers by free RAM, CPU and disk say together, so
that a host which is soon reserved is taken last and need not be emptied, and
less than the cost of victims. 0 spreads servers as if nothing were reserved.
It has no effect unless ``ReservationFilter`` is enabled. An aggregate's
metadata key of the same name overrides it for the aggregate's hosts.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
