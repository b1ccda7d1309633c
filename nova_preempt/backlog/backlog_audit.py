# SPDX-License-Identifier: Apache-2.0
"""Audits waiting requests against their servers and trusts."""

import collections
import datetime

from nova_preempt.backlog import backlog_options_from_conf
from nova_preempt.backlog import orphan_trusts
from nova_preempt.cloud import instances
from nova_preempt.core.backlog import audit_rules
from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions
from nova_preempt.handover.allocation_audit import Problem

# Kinds of problems.
STATE = 'request_of_wrong_state'
DOUBLED = 'server_too_many_of_request'
NO_TRUST = 'request_without_trust'
NO_REQUEST = 'trust_without_request'
UNCLEARED = 'request_with_trust_after_its_end'
BEGUN = 'request_never_taken'

# Many more than the API accepts at once.
_MANY = 1000


class BacklogAudit:
    """Finds inconsistencies; a repeated audit knows what has changed.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param reader: a nova_preempt.backlog.server_reader.ServerReader
    :param trusts: a nova_preempt.cloud.keystone_trusts.Trusts
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, options, database, reader, trusts, clock,
                 find=instances.find):
        self._options = options
        self._db = database
        self._reader = reader
        self._trusts = trusts
        self._clock = clock
        self._find = find
        # {uuid: updated_at}, as the last audit saw it
        self._before = {}

    def look(self):
        """Return all Problems, in order of kind and uuid.

        :raises KeystoneUnavailable: trusts cannot be listed
        """
        # NOTE: in this order a trust or server that is just being made does
        # not count as an orphan.
        now = self._clock()
        # A day ahead, as clocks may differ: all submissions.
        begun = backlog_submissions.older(
            self._db, now + datetime.timedelta(days=1), _MANY)
        requests = backlog_store.find(self._db, backlog_model.OPEN,
                                      with_bodies=False)
        closed = backlog_store.find(self._db, backlog_model.CLOSED,
                                    with_trust=True, with_bodies=False)
        if not (self._options.enabled or begun or requests or closed):
            return []
        found = [*self._states(requests, now),
                 *self._doubled([*requests, *closed], now),
                 *self._uncleared(closed, now), *self._begun(begun, now),
                 *self._trusts_of(requests, begun, now)]
        self._before = {item.uuid: item.updated_at for item in requests}
        return sorted(found)

    def _states(self, requests, now):
        seen = self._reader.look(requests, now)
        options = backlog_options_from_conf.boot_options(self._options)
        for request in requests:
            # A request that has just changed is being worked on.
            if self._before.get(request.uuid, request.updated_at) != (
                    request.updated_at) or request.uuid not in seen:
                continue
            what = audit_rules.inconsistency(
                request, seen[request.uuid].servers,
                seen[request.uuid].victims, now, options)
            if what:
                yield Problem(STATE, request.uuid,
                              f'request {request.uuid} {what}')

    def _doubled(self, requests, now):
        tags = {boot.tag: (request, boot.number)
                for request in requests for boot in request.boots}
        by_request = collections.defaultdict(
            lambda: collections.defaultdict(list))
        for server in self._find(tags=list(tags)).servers.values():
            for tag in tags.keys() & set(server.tags):
                request, number = tags[tag]
                if (server.project_id == request.project_id
                        and server.vm_state != 'soft-delete'
                        and not server.task_state):
                    by_request[request.uuid][number].append(server.uuid)
        for request in requests:
            for uuid in audit_rules.surplus_servers(request, by_request[
                    request.uuid], now):
                yield Problem(
                    DOUBLED, uuid,
                    f'server {uuid} has the tag of request {request.uuid}, '
                    'but does not belong to it')

    @staticmethod
    def _uncleared(closed, now):
        for request in closed:
            if audit_rules.has_stale_trust(request, now):
                yield Problem(
                    UNCLEARED, request.uuid,
                    f'request {request.uuid} is {request.state} since '
                    f'{request.updated_at}Z, and still has its trust '
                    f'{request.trust_id}')

    @staticmethod
    def _begun(begun, now):
        for item in begun:
            age_s = (now - item.begun_at).total_seconds()
            if age_s > 2 * orphan_trusts.LATE_S:
                yield Problem(
                    BEGUN, item.uuid,
                    f'request {item.uuid} of user {item.user_id} was begun '
                    f'at {item.begun_at}Z, and never completed')

    def _trusts_of(self, requests, begun, now):
        there = {item['id']: item for item in self._trusts.list()}
        for request in requests:
            if request.trust_id not in there and not (
                    request.trust_until and now >= request.trust_until):
                yield Problem(
                    NO_TRUST, request.uuid,
                    f'request {request.uuid} is {request.state}, and its '
                    f'trust {request.trust_id or "(none)"} is not in Keystone')
        coming = {(item.user_id, item.expires_at.isoformat())
                  for item in begun}
        # NOTE: read now, as a submission may have completed meanwhile.
        used = backlog_store.trusts(self._db)
        for trust_id in sorted(there.keys() - used):
            item = there[trust_id]
            if (item['trustor_user_id'],
                    (item.get('expires_at') or '')[:19]) not in coming:
                yield Problem(
                    NO_REQUEST, trust_id,
                    f'trust {trust_id} of user {item["trustor_user_id"]} is '
                    'of no request here')
