# SPDX-License-Identifier: Apache-2.0
"""Claims the chosen hosts of a multi-create request in one transaction.

Nova sorts hosts and claims for one server after another. If the hosts of all
servers are known, all are claimed in one Placement transaction with the first
server; Nova's later claims find them claimed. If the transaction is refused,
because another request was faster on one host, Nova claims one by one.
"""

from nova import exception
from oslo_log import log as logging

from nova_preempt.cloud import placement_api
from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.scheduler import engine_chosen_hosts
from nova_preempt.scheduler import host_states as states

LOG = logging.getLogger(__name__)


class MultiCreateClaim:
    """Claims chosen hosts for all servers of a request together.

    A context manager around each run of Nova's _schedule: it leaves nothing
    allocated for a server that was not placed.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param uuids: of the servers, in Nova's order
    :param choose: given how many servers, {class: amount} of each, provider
        summaries, host states and a RequestSpec: {node: how many servers}
    :param named: nodes to include in the allocation candidates
    """

    def __init__(self, placement, uuids, choose, named=()):
        self._placement = placement
        self._uuids = uuids
        self._choose = choose
        self._named = named
        self._wanted = {}
        self._summaries = {}

    def __enter__(self):
        self._left = None
        # {uuid: HostState} that are claimed together.
        self._planned = {}
        # {uuid: claimed allocations, None if the outcome is unknown}; None
        # before the first claim.
        self._held = None
        # Servers that Nova knows to be claimed.
        self._known = set()

    def __exit__(self, _kind, exc, _traceback):
        left = set(self._held or ())
        if exc is None or isinstance(exc, exception.NoValidHost):
            # These are placed, or Nova has cleaned up.
            left -= self._known
        self._take_back(sorted(left))

    # -- where Nova asks Placement for candidates ------------------------

    def offer(self, offered, ask, resources, find_providers):
        """Return allocation candidates; see engine_chosen_hosts.add()."""
        offered = engine_chosen_hosts.add(offered, self._named, ask, resources,
                                          find_providers)
        self._wanted = resources.merged_resources()
        # Nova may query twice, with different resources.
        self._summaries = {**self._summaries, **(offered[1] or {})}
        return offered

    # -- where Nova sorts hosts ------------------------------------------

    def first(self, host_states, spec_obj):
        """Return the host states, the chosen ones first.

        Chosen hosts that need victims are not preferred.

        :param spec_obj: the RequestSpec of the server
        """
        host_states = list(host_states)
        if self._left is None:
            self._begin(host_states, spec_obj)
        uuid = spec_obj.instance_uuid
        place = self._planned.get(uuid)

        def rank(state):
            if state is place and uuid in (self._held or ()):
                return 0
            if (not self._left.is_next(state.nodename)
                    or _needs_victims(state)):
                return 3
            return 1 if state is place else 2

        return sorted(host_states, key=rank)

    def _begin(self, host_states, spec_obj):
        hosts = self._choose(len(self._uuids), self._wanted, self._summaries,
                             host_states, spec_obj)
        self._left = boot_host_choice.UnplacedServers(hosts)
        places = [state for state in host_states if not _needs_victims(state)
                  for _ in range(hosts.get(state.nodename, 0))]
        if len(places) > 1:
            self._planned = dict(zip(self._uuids, places, strict=False))

    def consumed(self, state):
        """Note that a server was placed on a host."""
        if self._left is not None:
            self._left.take(state.nodename)

    # -- where Nova claims -----------------------------------------------

    def claim(self, real_claim, uuid, alloc_request, project_id, user_id):
        """Claim for a server as Nova does, unless it is claimed already.

        :param real_claim: claims as Nova does
        :param alloc_request: what the server gets, as Placement offers it
        :returns: whether the server is claimed
        """
        if self._held is None:
            self._held = self._claim_all(project_id, user_id)
        wanted = alloc_request['allocations']
        if self._held.get(uuid) != wanted:
            # Not claimed yet; or Nova has sorted another host first by now,
            # for example because of other servers of the request.
            if not self._take_back([uuid]) or not real_claim():
                return False
            self._held[uuid] = wanted
        self._known.add(uuid)
        return True

    def _claim_all(self, project_id, user_id):
        """Return {uuid: allocations, None if the outcome is unknown}."""
        found = {uuid: state.allocation_candidates[0]['allocations']
                 for uuid, state in self._planned.items()
                 if state.allocation_candidates}
        if not found:
            return {}
        try:
            self._placement.post_allocations([
                placement_api.Consumer(uuid, allocations, None, project_id,
                                       user_id)
                for uuid, allocations in found.items()])
        except placement_api.Conflict as exc:
            LOG.info('%(count)s servers are claimed one by one, as their '
                     'joint claim was refused: %(exc)s',
                     {'count': len(found), 'exc': exc})
            return {}
        except placement_api.PlacementError as exc:
            LOG.warning('Servers %(uuids)s are claimed one by one, as the '
                        'result of their joint claim is unknown: %(exc)s',
                        {'uuids': ', '.join(found), 'exc': exc})
            return dict.fromkeys(found)
        LOG.info('Claimed %s servers in one transaction.', len(found))
        return found

    def _take_back(self, uuids):
        """Delete claimed allocations; return whether none is left."""
        is_done = True
        for uuid in uuids:
            if uuid not in self._held:
                continue
            try:
                self._placement.delete_allocations(uuid)
            except (placement_api.PlacementError,
                    placement_api.Conflict) as exc:
                LOG.error('Server %(uuid)s may have allocations, and cannot '
                          'be placed: %(exc)s', {'uuid': uuid, 'exc': exc})
                is_done = False
            else:
                del self._held[uuid]
        return is_done


def _needs_victims(state):
    return bool(states.mark_of(state).victims)
