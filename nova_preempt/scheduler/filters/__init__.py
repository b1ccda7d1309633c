# SPDX-License-Identifier: Apache-2.0
"""Host filters, and the handler that runs every filter on the right state."""

import copy

from nova import objects
from nova.scheduler import filters
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.db import decisions
from nova_preempt.db import pending_outcomes
from nova_preempt.scheduler import host_states

LOG = logging.getLogger(__name__)

# How long a placed server counts as being on its host before Nova shows it
# there, in seconds. Its outcome is usually known earlier.
BUILD_S = 300

_AFFINITY = 'affinity'
_ANTI_AFFINITY = 'anti-affinity'


def pending_group_members(process, spec_obj):
    """Return {service host: uuids of group members that have claimed it}.

    A request that has claimed a host waits until its victims are gone. Nova
    does not know of its server there until the compute service claims the
    host. Without this, another member of an anti-affinity group could be
    placed on the same host, and another member of an affinity group on a
    different host.

    Not cached: other requests claim meanwhile.

    :param process: a nova_preempt.handover.service_context.ProcessContext
    """
    group = spec_obj.instance_group if 'instance_group' in spec_obj else None
    if (group is None or 'members' not in group
            or group.policy not in (_AFFINITY, _ANTI_AFFINITY)):
        return {}
    members = set(group.members or ()) - {spec_obj.instance_uuid}
    found = {}
    try:
        # In this order: a request that waits is placed next.
        hosts = [(decision.server_uuid, decision.host) for decision
                 in process.decisions.get_decisions(
                     statuses=(decisions.INTENT, decisions.CLAIMED))]
        hosts += pending_outcomes.get_placed(process.db, BUILD_S).items()
    except db_exc.DBError as exc:
        LOG.warning('Cannot read which servers of a group wait for their '
                    'hosts: %s', exc)
        return {}
    for uuid, host in hosts:
        if uuid in members:
            found.setdefault(host, set()).add(uuid)
    return found


def _with_members(state, uuids):
    """Return a copy of a host state with these servers on the host."""
    view = copy.copy(state)
    # Nova shares the dict with its tracking of instances.
    view.instances = {**{uuid: objects.Instance(uuid=uuid)
                         for uuid in uuids}, **state.instances}
    return view


def _add_group_hosts(spec_obj, hosts):
    """Add these hosts to those of the request's affinity group."""
    group = spec_obj.instance_group
    if group.policy == _AFFINITY:
        known = list(group.hosts or ()) if 'hosts' in group else []
        group.hosts = [*known, *sorted(set(hosts) - set(known))]


class HostFilterHandler(filters.HostFilterHandler):
    """Runs Nova's filters, and any others, unmodified on the right state.

    A host state that is marked to be filtered as another one is; the host
    state itself is returned if it passes.

    :param get_waiting: given a RequestSpec, returns which members of its group
        wait for which hosts; see pending_group_members()
    """

    def __init__(self, get_waiting=lambda spec_obj: {}):
        super().__init__()
        self._get_waiting = get_waiting

    def get_filtered_objects(self, filters, objs, spec_obj, index=0):
        originals = {}
        views = []
        waiting = self._get_waiting(spec_obj)
        if waiting:
            _add_group_hosts(spec_obj, waiting)
        for state in objs:
            view = host_states.mark_of(state).filtered_as or state
            if state.host in waiting:
                view = _with_members(view, waiting[state.host])
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
