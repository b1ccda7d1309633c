# SPDX-License-Identifier: Apache-2.0
"""Reads the servers of requests from Nova's databases."""

import collections

from nova_preempt.cloud import instances
from nova_preempt.core.backlog import request_servers


class ServerReader:
    """Finds the servers of many requests at once.

    :param decisions: a nova_preempt.db.Decisions
    :param find: see nova_preempt.cloud.instances.find
    """

    def __init__(self, decisions, find=instances.find):
        self._decisions = decisions
        self._find = find

    def look(self, requests, now):
        """Return {uuid: core Seen} of requests whose cells answer.

        :param requests: core Requests
        """
        tags = {item.uuid: request_servers.sought_tags(item, now)
                for item in requests}
        uuids = {item.uuid: request_servers.sought_servers(item)
                 for item in requests}
        found = self._find(
            [tag for some in tags.values() for tag in some],
            [uuid for some in uuids.values() for uuid in some])
        by_request = self._by_request(requests, found.servers)
        asked = {uuid for item in requests for uuid in uuids[item.uuid]
            if request_servers.may_be_evicted(by_request[item.uuid].get(uuid))}
        victims = self._decisions.get_statuses(asked) if asked else {}
        return {item.uuid: request_servers.FoundServers(tuple(by_request[
            item.uuid].values()), {uuid: victims[uuid] for uuid in uuids[
            item.uuid] if uuid in victims}) for item in requests if (
            found.is_whole or not tags[item.uuid])
            and not found.unsure.intersection(uuids[item.uuid])}

    @staticmethod
    def _by_request(requests, found):
        """Return {uuid of a request: {uuid of a server: ObservedServer}}."""
        owners = {server.uuid: item.uuid
                  for item in requests for server in item.servers}
        projects = {item.uuid: item.project_id for item in requests}
        seen = collections.defaultdict(dict)
        for server in found.values():
            owner = owners.get(server.uuid) or _owner(server, projects)
            if owner is not None:
                seen[owner][server.uuid] = server
        return seen


def _owner(server, projects):
    """Return the uuid of a request by the tags of its server.

    The project has to match, as any user may set any tag.
    """
    for text in server.tags:
        owner = request_servers.untag(text)
        if owner and projects.get(owner[0]) == server.project_id:
            return owner[0]
    return None
