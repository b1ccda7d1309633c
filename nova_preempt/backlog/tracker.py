# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Following requests: what has become of their servers."""

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.backlog import open_requests
from nova_preempt.backlog import options as backlog_options
from nova_preempt.backlog import users
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import lifecycle
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import servers
from nova_preempt.db import backlog as db

LOG = logging.getLogger(__name__)


class Tracker:
    """Looks at requests and writes down what is seen.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param eyes: a nova_preempt.backlog.server_reader.ServerReader
    :param acting: a nova_preempt.backlog.users.Users
    :param records: a nova_preempt.backlog.records.Records
    :ivar coming_back: the uuids of servers that gave way, are kept, and that
        open requests have come back
    """

    def __init__(self, options, database, eyes, acting, records):
        self._options = options
        self._database = database
        self._eyes = eyes
        self._users = acting
        self._records = records
        self._deleting, self._closing = users.Turns(), users.Turns()
        self.coming_back = frozenset()
        self._open = open_requests.OpenRequests(database)
        # {uuid of an open one: uuids of servers that nobody may delete}
        self._left = {}

    def follow(self, now):
        """Look at all that are open; returns them as they are then."""
        requests = self._open.read()
        seen = self._eyes.look(
            [item for item in requests if item.boots or item.servers], now)
        options = backlog_options.lifecycle(self._options)
        self._left = {item.uuid: self._left[item.uuid] for item in requests
                      if item.uuid in self._left}
        followed, deletes, returning = [], {}, []
        for request in requests:
            verdict = boot_outcome.expire(request, now)
            if verdict is None and request.uuid in seen:
                verdict = lifecycle.judge(
                    request, seen[request.uuid].servers,
                    seen[request.uuid].victims, now, options)
            if verdict is not None:
                if not self._records.record(request, verdict, now):
                    continue
                request = boot_outcome.after(request, verdict)
                deletes[request.uuid] = request, [
                    uuid for uuid in verdict.deletes
                    if uuid not in self._left.get(request.uuid, ())]
            if request.state in model.OPEN:
                followed.append(request)
                returning += lifecycle.coming_back(request, now)
        self.coming_back = frozenset(returning)
        self._deleting.each(
            [item for item, _uuids in deletes.values()],
            lambda item: self._delete(item, deletes[item.uuid][1], now))
        for state in model.OPEN:
            metrics.BACKLOG_REQUESTS.labels(state).set(
                sum(item.state == state for item in followed))
        return followed

    def close(self, now):
        """Clear up what is left of closed ones, their trusts last.

        :returns: of how many the trust is still there
        """
        requests = db.find(self._database, model.CLOSED, with_trust=True,
                           with_bodies=False)
        seen = self._eyes.look(requests, now)
        cleared = []
        self._closing.each(
            [item for item in requests if item.uuid in seen],
            lambda item: self._clear(item, seen[item.uuid].servers, now)
            and cleared.append(item))
        return len(requests) - len(cleared)

    def _delete(self, request, uuids, now):
        """Delete servers, or say that nobody may."""
        try:
            self._users.delete(request, uuids)
        except users.NotDeleted as exc:
            if not (exc.is_final or servers.is_late(request, now)):
                raise
            self._left.setdefault(request.uuid, set()).update(uuids)
            self._give_up(request, uuids, exc, now)
            return False
        return True

    def _give_up(self, request, uuids, exc, now):
        """Say once that servers of a request are left."""
        left = ', '.join(uuids)
        text = (f'Its servers {left} are left, as neither its user nor the '
                f'service user may delete them: {exc}')
        if text in request.reason:
            return
        LOG.warning(
            'Servers %(left)s of request %(uuid)s are left, as neither its '
            'user nor the service user may delete them: %(exc)s',
            {'uuid': request.uuid, 'left': left, 'exc': exc})
        db.change(self._database, request.uuid, (request.state,), now,
                  state=request.state, ends_servers=False,
                  reason=f'{request.reason} {text}'.strip())

    def _clear(self, request, sights, now):
        """The next step; returns whether it was the last."""
        verdict, is_clear = lifecycle.closing(
            request, sights, now, backlog_options.lifecycle(self._options))
        if not self._records.record(request, verdict, now):
            return False
        is_deleted = self._delete(request, verdict.deletes, now)
        if is_deleted and not is_clear:
            return False
        if is_deleted and verdict.locked:
            self._give_up(request, verdict.locked,
                          'they are locked', now)
        self._users.forget(request)
        return db.change(self._database, request.uuid, model.CLOSED, now,
                         trust_id='')
