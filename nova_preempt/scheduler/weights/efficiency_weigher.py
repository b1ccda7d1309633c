# SPDX-License-Identifier: Apache-2.0
"""Frugal hosts first: KWRanking of Rossigneux et al."""

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

import nova_preempt.conf
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.power import efficiency_cache
from nova_preempt.scheduler import weights as ours

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)


class KWRankingWeigher(weights.BaseHostWeigher):
    """FLOPS per watt, or the watts that the request adds, negated.

    By what hosts draw now where a source tells, by their figures where none
    does. Both are of a table that a thread keeps, so that no decision waits.
    Without any figure all hosts weigh the same, which changes nothing.
    """

    def __init__(self):
        super().__init__()
        self.figures = efficiency_cache.of(CONF)

    def start(self):
        """Begin to read figures. Else the first decision does, without."""
        self.figures.start()

    def weight_multiplier(self, host_state):
        return utils.get_weight_multiplier(
            host_state, 'kw_ranking_weight_multiplier',
            CONF.filter_scheduler.kw_ranking_weight_multiplier)

    def weigh_objects(self, weighed_obj_list, weight_properties):
        self.figures.start()
        weigh = self._weigher()
        found = [weigh(weighed.obj, weight_properties)
                 for weighed in weighed_obj_list]
        if all(value is None for value in found):
            return []
        return ours.unless_equal(efficiency_ranking.fill_unknown(
            found, last=CONF.energy.unknown == 'last'))

    def _weigher(self):
        if CONF.energy.ranking == 'marginal':
            return self._weigh_marginal
        return self._weigh_efficiency

    def _weigh_object(self, host_state, weight_properties):
        """Return the weight, None if it is unknown."""
        return self._weigher()(host_state, weight_properties)

    def _weigh_efficiency(self, host_state, request_spec):
        figures = self._figures(host_state)
        return figures and figures.flops_per_watt

    def _figures(self, host_state):
        """Return the figures of a host, None if unknown."""
        name = host_state.nodename
        figures = self.figures.get(name)
        if figures is None:
            return None
        return figures.as_measured(
            self.figures.watts_now(name),
            _share(host_state, host_state.vcpus_used))

    def _weigh_marginal(self, host_state, request_spec):
        figures = self._figures(host_state)
        if figures is None:
            return None
        watts = figures.marginal_watts(
            _share(host_state, request_spec.vcpus),
            in_use=host_state.num_instances > 0)
        return None if watts is None else -watts


def _share(host_state, vcpus):
    return efficiency_ranking.share(vcpus, host_state.vcpus_total,
                                    host_state.cpu_allocation_ratio)
