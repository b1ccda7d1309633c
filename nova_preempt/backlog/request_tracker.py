# SPDX-License-Identifier: Apache-2.0
"""Records state transitions of requests, and deletes their servers."""

import dataclasses

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.backlog import user_nova_clients
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import redaction
from nova_preempt.core.backlog import request_servers
from nova_preempt.db import backlog_store

LOG = logging.getLogger(__name__)


class RequestTracker:
    """Reads requests and their servers, and records verdicts on them.

    :param database: a nova_preempt.db.Database
    :param reader: a nova_preempt.backlog.server_reader.ServerReader
    :param acting: a nova_preempt.backlog.user_nova_clients.UserNovaClients
    :param records: a transition_recorder.TransitionRecorder
    """

    def __init__(self, database, reader, acting, records):
        self._db = database
        self._reader = reader
        self._users = acting
        self._records = records
        self._deleting, self._closing = user_nova_clients.FailureBackoff(
            ), user_nova_clients.FailureBackoff()
        self._bodies = {}         # uuid: see redaction.for_pass()
        # {uuid of an open request: uuids of servers that cannot be deleted}
        self._left = {}

    def open(self):
        """Return the open core Requests, with the bodies that a pass needs.

        Each body is read once, as it never changes.
        """
        requests = backlog_store.find(self._db, backlog_model.OPEN,
                                      with_bodies=False)
        there = {item.uuid for item in requests}
        self._bodies = {uuid: body for uuid, body in self._bodies.items()
                        if uuid in there}
        for uuid, body in backlog_store.bodies(self._db,
                                               there - self._bodies.keys()):
            self._bodies[uuid] = redaction.for_pass(body)
        # Without requests that were purged in between.
        return [dataclasses.replace(item, body=self._bodies[item.uuid])
                for item in requests if item.uuid in self._bodies]

    def look(self, now):
        """Read open requests, and closed ones that are not cleaned up.

        :returns: (the open core Requests, the closed ones,
            {uuid: core.backlog.request_servers.FoundServers})
        """
        requests = self.open()
        closed = backlog_store.find(self._db, backlog_model.CLOSED,
                                    with_trust=True, with_bodies=False)
        return requests, closed, {
            **self._reader.look([item for item in requests
                                 if item.boots or item.servers], now),
            **self._reader.look(closed, now)}

    def record(self, requests, intents, now):
        """Write verdicts on open requests, and delete their servers.

        :param requests: the open requests
        :param intents: core.backlog.backlog_controller.RecordTransition
        :returns: the uuids of requests that have changed meanwhile
        """
        states = {item.uuid: item.state for item in requests}
        self._left = {uuid: left for uuid, left in self._left.items()
                      if uuid in states}
        deletes = {}
        for item in intents:
            uuid = item.request.uuid
            if self._records.record(item.request, item.verdict, now):
                states[uuid] = item.verdict.state
                deletes[uuid] = [
                    each for each in item.verdict.deletes
                    if each not in self._left.get(uuid, ())]
            else:
                del states[uuid]
        self._deleting.each([boot_outcome.with_verdict(item.request,
            item.verdict) for item in intents if item.request.uuid in deletes],
            lambda item: self._delete(item, deletes[item.uuid], now))
        for state in backlog_model.OPEN:
            metrics.BACKLOG_REQUESTS.labels(state).set(
                sum(item == state for item in states.values()))
        return {item.request.uuid for item in intents} - deletes.keys()

    def clear(self, requests, intents, now):
        """Clean up closed requests; their trusts are deleted last.

        :param requests: the closed requests
        :param intents: core.backlog.backlog_controller.CleanUpRequest
        :returns: the number of trusts that still exist
        """
        of, cleared = {item.request.uuid: item for item in intents}, []
        self._closing.each(
            [item.request for item in intents],
            lambda item: self._clear(of[item.uuid], now)
            and cleared.append(item))
        return len({item.uuid for item in requests} | of.keys()) - len(cleared)

    def _delete(self, request, uuids, now):
        """Delete servers; return False once that is given up."""
        try:
            self._users.delete(request, uuids)
        except user_nova_clients.ServersNotDeleted as exc:
            if not (exc.is_final or request_servers.is_late(request, now)):
                raise
            self._left.setdefault(request.uuid, set()).update(uuids)
            self._give_up(request, uuids, exc, now)
            return False
        return True

    def _give_up(self, request, uuids, exc, now):
        """Record once that servers of a request are not deleted."""
        left = ', '.join(uuids)
        text = (f'Its servers {left} are left, as neither its user nor the '
                f'service user may delete them: {exc}')
        if text in request.reason:
            return
        LOG.warning(
            'Servers %(left)s of request %(uuid)s are left, as neither its '
            'user nor the service user may delete them: %(exc)s',
            {'uuid': request.uuid, 'left': left, 'exc': exc})
        backlog_store.change(self._db, request.uuid, (request.state,),
                             now, state=request.state, ends_servers=False,
                             reason=f'{request.reason} {text}'.strip())

    def _clear(self, intent, now):
        """Do the next step; return whether it was the last one."""
        request, verdict = intent.request, intent.verdict
        if not self._records.record(request, verdict, now):
            return False
        is_deleted = self._delete(request, verdict.deletes, now)
        if is_deleted and not intent.is_last:
            return False
        if is_deleted and verdict.locked:
            self._give_up(request, verdict.locked, 'they are locked', now)
        self._users.forget(request)
        return backlog_store.change(self._db, request.uuid,
                                    backlog_model.CLOSED, now, trust_id='')
