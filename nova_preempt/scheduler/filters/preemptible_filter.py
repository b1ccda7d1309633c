# SPDX-License-Identifier: Apache-2.0
"""Filter of hosts by aggregate: preemptible servers, preemption."""

from nova.scheduler import filters
from nova.scheduler import utils as nova_utils
from nova.scheduler.filters import utils
from oslo_utils import strutils

from nova_preempt.cloud import request_specs
from nova_preempt.scheduler import host_states

ALLOW_SERVERS = 'preemptible:allow_servers'
ALLOW_PREEMPTION = 'preemptible:allow_preemption'


class PreemptibleFilter(filters.BaseHostFilter):
    """Lets an operator keep preemptible servers, or preemption, off hosts.

    By metadata of the aggregates that a host is in:

    * ``preemptible:allow_servers=false``: no preemptible servers there;
    * ``preemptible:allow_preemption=false``: preemptible servers there are
      not ended for normal ones.
    """

    RUN_ON_REBUILD = False

    def filter_all(self, filter_obj_list, spec_obj):
        # What is asked of a request is asked once, not for each host.
        if nova_utils.request_is_rebuild(spec_obj):
            return list(filter_obj_list)
        if request_specs.is_preemptible(spec_obj):
            return [state for state in filter_obj_list
                    if _allowed(state, ALLOW_SERVERS)]
        return [state for state in filter_obj_list if may_preempt(state)]

    def host_passes(self, host_state, spec_obj):
        if request_specs.is_preemptible(spec_obj):
            return _allowed(host_state, ALLOW_SERVERS)
        return may_preempt(host_state)


def may_preempt(host_state):
    """Return whether victims on this host may be evicted."""
    return (not host_states.mark_of(host_state).victims
            or _allowed(host_state, ALLOW_PREEMPTION))


def _allowed(host_state, key):
    values = utils.aggregate_values_from_key(host_state, key)
    return all(strutils.bool_from_string(value, default=True)
               for value in values)
