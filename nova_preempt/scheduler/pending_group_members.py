# SPDX-License-Identifier: Apache-2.0
"""Members of server groups that have a host and are not there yet.

A request that has claimed a host waits until its victims are gone. Nova knows
of no server there until the compute service claims the host, and would let
another member of an anti-affinity group choose the same host, where only one
of both can start once the victims of both have ended; and of an affinity group
another host.
"""

import copy

from nova import objects
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.db import decisions
from nova_preempt.db import unresolved_decisions

LOG = logging.getLogger(__name__)

# For how long a server that was placed counts as being on its host before
# Nova shows it there. What became of it is known before, as a rule.
BUILD_S = 300

AFFINITY = 'affinity'
ANTI_AFFINITY = 'anti-affinity'


def of_group(process, spec_obj):
    """{service host: uuids of members of the request's group}.

    Asked each time: others claim meanwhile.

    :param process: a nova_preempt.handover.service_context.Process
    """
    group = spec_obj.instance_group if 'instance_group' in spec_obj else None
    if (group is None or 'members' not in group
            or group.policy not in (AFFINITY, ANTI_AFFINITY)):
        return {}
    members = set(group.members or ()) - {spec_obj.instance_uuid}
    found = {}
    try:
        # In this order: who waits is placed next.
        hosts = [(decision.server_uuid, decision.host) for decision
                 in process.decisions.get_decisions(
                     statuses=(decisions.INTENT, decisions.CLAIMED))]
        hosts += unresolved_decisions.get_placed(process.db, BUILD_S).items()
    except db_exc.DBError as exc:
        LOG.warning('Cannot tell which servers of a group wait for their '
                    'hosts: %s', exc)
        return {}
    for uuid, host in hosts:
        if uuid in members:
            found.setdefault(host, set()).add(uuid)
    return found


def seen(state, uuids):
    """A copy of a host state in which these servers are there, too."""
    view = copy.copy(state)
    # Nova shares the dict with its tracking of instances.
    view.instances = {**{uuid: objects.Instance(uuid=uuid)
                         for uuid in uuids}, **state.instances}
    return view


def add_hosts(spec_obj, hosts):
    """Count these among the hosts of the request's affinity group."""
    group = spec_obj.instance_group
    if group.policy == AFFINITY:
        known = list(group.hosts or ()) if 'hosts' in group else []
        group.hosts = [*known, *sorted(set(hosts) - set(known))]
