# SPDX-License-Identifier: Apache-2.0
"""Weigher that prefers hosts whose next reservation is late."""

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from nova_preempt.cloud import request_specs
import nova_preempt.conf
from nova_preempt.reservation import lease_cache
from nova_preempt.scheduler import weights as ours

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)

# As good as never: ten years.
NEVER_S = 10 * 365 * 86400


class ReservationFreeTimeWeigher(weights.BaseHostWeigher):
    """The time until the host's next reservation.

    A request that names a reservation goes where that is: 0 for every host.

    As in PreemptionCostWeigher, ranks are what Nova gets: beside one host
    that nobody has reserved, an hour and a week would weigh next to the same.
    """

    def weight_multiplier(self, host_state):
        return utils.get_weight_multiplier(
            host_state, 'reservation_free_time_weight_multiplier',
            CONF.filter_scheduler.reservation_free_time_weight_multiplier)

    def weigh_objects(self, weighed_obj_list, weight_properties):
        # Without the filter nobody obeys reservations, and nobody asks for
        # them.
        if not lease_cache.is_used(CONF) or request_specs.reservations(
                weight_properties):
            return []
        view = lease_cache.current(CONF).view()
        return ours.ranked([_free_s(view, weighed.obj)
                            for weighed in weighed_obj_list])

    def _weigh_object(self, host_state, weight_properties):
        if request_specs.reservations(weight_properties):
            return 0
        return _free_s(lease_cache.current(CONF).view(), host_state)


def _free_s(view, host_state):
    return min(view.free_s(host_state.nodename), NEVER_S)
