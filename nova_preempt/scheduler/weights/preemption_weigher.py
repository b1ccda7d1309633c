# SPDX-License-Identifier: Apache-2.0
"""Weigher that prefers free hosts, then hosts with cheap victims.

Algorithms 3 and 4 of López García et al. (FGCS 2019). Algorithm 4 is read as
the cost of the cheapest set of victims that makes room for the request: that
alone gives all four published choices, a sum over every preemptible server of
the host does not.
"""

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

import nova_preempt.conf
from nova_preempt.scheduler import host_states
from nova_preempt.scheduler import weights as ours

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)


class PreemptionWeigher(weights.BaseHostWeigher):
    """1 if preemptible servers would have to end, 0 if the host has room.

    With fixed bounds the difference is always the whole multiplier, which is
    negated: it counts against the host that needs victims.
    """

    minval = 0
    maxval = 1

    def weight_multiplier(self, host_state):
        return -1 * utils.get_weight_multiplier(
            host_state, 'preemption_weight_multiplier',
            CONF.filter_scheduler.preemption_weight_multiplier)

    def weigh_objects(self, weighed_obj_list, weight_properties):
        found = [self._weigh_object(weighed.obj, weight_properties)
                 for weighed in weighed_obj_list]
        # 0 is nothing for every host, and 1 is not: aggregates have
        # multipliers of their own.
        return found if any(found) else []

    def _weigh_object(self, host_state, weight_properties):
        return 1 if host_states.mark_of(host_state).victims else 0


class PreemptionCostWeigher(weights.BaseHostWeigher):
    """The rank of the cost of the host's cheapest victims, higher is cheaper.

    Nova scales weights to the range of the values it sees; scaled like that,
    one second would weigh next to nothing beside an hour. Ranks keep hosts of
    different cost apart whatever the range, and whatever unit a cost function
    counts in.
    """

    def weight_multiplier(self, host_state):
        return utils.get_weight_multiplier(
            host_state, 'preemption_cost_weight_multiplier',
            CONF.filter_scheduler.preemption_cost_weight_multiplier)

    def weigh_objects(self, weighed_obj_list, weight_properties):
        return ours.ranked([self._weigh_object(weighed.obj, weight_properties)
                            for weighed in weighed_obj_list])

    def _weigh_object(self, host_state, weight_properties):
        return -host_states.mark_of(host_state).cost_us
