# SPDX-License-Identifier: Apache-2.0

"""Options of [filter_scheduler]: multipliers of weighers."""

from oslo_config import cfg

GROUP = 'filter_scheduler'

OPTS = [
    cfg.FloatOpt(
        'kw_ranking_weight_multiplier', default=1.0,
        help="""
Multiplier of ``KWRankingWeigher``, which prefers efficient hosts, as
``[energy]ranking`` defines.

No unit; the weight of a host is between 0 (the worst of the compared hosts)
and 1 (the best). The default equals that of Nova's weighers of RAM, disk and
CPU, which together spread servers over all hosts: set it far above their sum,
such as to 100, to gather servers on efficient hosts, or lower theirs. No
effect as long as no host has figures. A negative number prefers inefficient
hosts. An aggregate's metadata key of the same name
overrides it for the aggregate's hosts.
"""),
    cfg.FloatOpt(
        'preemption_weight_multiplier', default=200000.0,
        help="""
Multiplier of ``PreemptionWeigher``, which prefers hosts with free capacity to
hosts that need victims.

No unit; it is subtracted from the weight of a host that needs victims. The
default is twice the default of ``preemption_cost_weight_multiplier``, so that
a host with free capacity always wins, and less than the multipliers of the
build failure and cross-cell weighers (1 000 000), which keep their effect.
With 0 only ``preemption_cost_weight_multiplier`` ranks hosts that need victims
lower. An aggregate's
metadata key of the same name overrides it for the aggregate's hosts.
"""),
    cfg.FloatOpt(
        'preemption_cost_weight_multiplier', default=100000.0,
        help="""
Multiplier of ``PreemptionCostWeigher``, which prefers hosts with cheaper
victims.

No unit; the weight of a host is its rank by cost among the compared hosts,
from 0 (most expensive) to 1 (cheapest), whatever the unit of the cost
function. The default puts the host of least cost first, and Nova's ordinary
weighers break ties.
An aggregate's metadata key of the same name overrides it for the aggregate's
hosts.
"""),
    cfg.FloatOpt(
        'reservation_free_time_weight_multiplier', default=10.0,
        help="""
Multiplier of ``ReservationFreeTimeWeigher``, which prefers hosts whose next
reservation starts later.

No unit; the weight of a host is its rank by that time among the compared
hosts, from 0 (the soonest) to 1 (the latest, or no reservation). The default
exceeds the sum of Nova's weighers by free RAM, CPU and disk, so that a host
with a near reservation is chosen last and need not be drained, and is less
than the cost of victims. 0 ignores reservations. No effect unless
``ReservationFilter`` is enabled. An aggregate's
metadata key of the same name overrides it for the aggregate's hosts.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
