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

from nova_preempt import metrics
from nova_preempt.backlog import options as backlog_options
from nova_preempt.core.backlog import answers
from nova_preempt.core.backlog import lifecycle
from nova_preempt.core.backlog import model
from nova_preempt.db import backlog as db


class Following:
    """Looks at requests and writes down what is seen.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param eyes: a nova_preempt.backlog.sight.Eyes
    :param users: a nova_preempt.backlog.users.Users
    :param records: a nova_preempt.backlog.records.Records
    """

    def __init__(self, options, database, eyes, users, records):
        self._options = options
        self._database = database
        self._eyes = eyes
        self._users = users
        self._records = records

    def follow(self, now):
        """Look at all that are open; returns them as they are then."""
        requests = db.find(self._database, model.OPEN)
        seen = self._eyes.look(
            [item for item in requests if item.boots or item.servers], now)
        options = backlog_options.lifecycle(self._options)
        followed = []
        for request in requests:
            verdict = answers.expire(request, now)
            if verdict is None and request.uuid in seen:
                verdict = lifecycle.judge(
                    request, seen[request.uuid].sights,
                    seen[request.uuid].victims, now, options)
            if verdict is not None:
                request = self._apply(request, verdict, now)
            if request is not None and request.state in model.OPEN:
                followed.append(request)
        for state in model.OPEN:
            metrics.BACKLOG_REQUESTS.labels(state).set(
                sum(item.state == state for item in followed))
        return followed

    def close(self, now):
        """Clear up what is left of closed ones, their trusts last."""
        requests = db.find(self._database, model.CLOSED, with_trust=True)
        seen = self._eyes.look(requests, now)
        left = sum(not (item.uuid in seen
                        and self._clear(item, seen[item.uuid].sights, now))
                   for item in requests)
        metrics.BACKLOG_TRUSTS.set(left)

    def _clear(self, request, sights, now):
        """The next step; returns whether it was the last."""
        verdict, is_clear = lifecycle.closing(
            request, sights, now, backlog_options.lifecycle(self._options))
        if self._apply(request, verdict, now) is None or not is_clear:
            return False
        return self._users.forget(request) and db.change(
            self._database, request.uuid, model.CLOSED, now, trust_id='')

    def _apply(self, request, verdict, now):
        """The request as it is then; None if somebody else has changed it."""
        if not self._records.record(request, verdict, now):
            return None
        self._users.delete(request, verdict.deletes)
        return answers.after(request, verdict)
