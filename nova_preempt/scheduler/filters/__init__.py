# SPDX-License-Identifier: Apache-2.0
"""Host filters, and the handler that runs every filter on the right state."""

from nova.scheduler import filters

from nova_preempt.scheduler import host_states
from nova_preempt.scheduler import pending_group_members


class HostFilterHandler(filters.HostFilterHandler):
    """Runs Nova's filters, and any others, unmodified on the right state.

    A host state that is marked to be filtered as another one is; the host
    state itself is returned if it passes.

    :param get_waiting: given a RequestSpec, returns which members of its group
        wait for which hosts; see pending_group_members.of_group()
    """

    def __init__(self, get_waiting=lambda spec_obj: {}):
        super().__init__()
        self._get_waiting = get_waiting

    def get_filtered_objects(self, filters, objs, spec_obj, index=0):
        originals = {}
        views = []
        waiting = self._get_waiting(spec_obj)
        if waiting:
            pending_group_members.add_hosts(spec_obj, waiting)
        for state in objs:
            view = host_states.mark_of(state).filtered_as or state
            if state.host in waiting:
                view = pending_group_members.seen(view, waiting[state.host])
            originals[id(view)] = state
            views.append(view)
        passed = super().get_filtered_objects(filters, views, spec_obj, index)
        if passed is None:
            return None
        found = []
        for view in passed:
            state = originals[id(view)]
            if state is not view:
                # Filters may narrow down the allocation candidates.
                state.allocation_candidates = view.allocation_candidates
            found.append(state)
        return found


def all_filters():
    """Our filter classes, for [filter_scheduler]available_filters."""
    return HostFilterHandler().get_all_classes()
