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
"""How many servers of a project, or of a server group, may end at once.

What is chosen keeps the budgets as far as they are known; what is written to
the database keeps them in any case, for that is where all schedulers count.
"""

import collections
import datetime

from oslo_utils import timeutils

from nova_preempt.core import model
from nova_preempt.db import api as db_api
from nova_preempt.scheduler import groups


class Budgets:
    """The budgets that are set; False if none is.

    :param options: [preemption] of the configuration
    :param db: a nova_preempt.db.Database
    :param view: a nova_preempt.scheduler.view.ServerView
    """

    def __init__(self, options, db, view):
        self.project_budget = options.project_budget
        self.group_budget = options.group_budget
        self._window_s = options.budget_window_s
        self._db = db
        self._view = view
        self._groups = {}        # server uuid: ids of its groups

    def __bool__(self):
        return bool(self.project_budget or self.group_budget)

    def spending(self):
        """A Spending for one request."""
        return Spending(self)

    def refresh(self):
        """Read the groups of all servers anew, in the background."""
        if self.group_budget:
            self._groups = groups.get_groups(self._uuids())

    def _uuids(self):
        return {server.uuid for server in self._view.servers()}

    def get_ending(self):
        """{uuid of a server that counts: its project's id}."""
        return self._db.get_ending(self._since())

    def _since(self):
        if not self._window_s:
            return None
        return timeutils.utcnow() - datetime.timedelta(seconds=self._window_s)

    def learn_groups(self, uuids):
        """Make sure that the groups of these and all others are known."""
        if self.group_budget:
            # A server does not change its groups.
            self._groups |= groups.get_groups(
                (self._uuids() | uuids) - self._groups.keys())

    def get_keys(self, uuid, project_id):
        """[(what it counts for, the budget of that)] of a server."""
        keys = []
        if self.project_budget:
            keys.append((('project', project_id), self.project_budget))
        if self.group_budget:
            found = self._groups.get(uuid)
            if found is None:
                found = groups.get_groups({uuid})[uuid]
            keys += [(('group', group_id), self.group_budget)
                     for group_id in sorted(found)]
        return keys

    def guard(self, victims):
        """What makes db.create_decision() see to the budgets of victims.

        :param victims: db.Victims
        :returns: further arguments for it
        """
        if not self:
            return {}
        uuids = {victim.server_uuid for victim in victims}
        members = {}
        if self.group_budget:
            members = groups.get_members(
                set().union(*groups.get_groups(uuids).values()))

        def check(ending):
            self._check(ending, {victim.project_id for victim in victims},
                        members)

        return {'check': check, 'since': self._since()}

    def _check(self, ending, projects, members):
        counts = collections.Counter(ending.values())
        for project_id in sorted(projects):
            if 0 < self.project_budget < counts[project_id]:
                raise db_api.OverBudget(
                    f'project {project_id} would have {counts[project_id]} '
                    f'servers ending, its budget is {self.project_budget}')
        for group_id, uuids in sorted(members.items()):
            count = len(uuids & ending.keys())
            if count > self.group_budget:
                raise db_api.OverBudget(
                    f'server group {group_id} would have {count} servers '
                    f'ending, its budget is {self.group_budget}')


class Spending:
    """What is left of the budgets, as it was when it was first asked for."""

    def __init__(self, budgets):
        self._budgets = budgets
        self._counts = None
        self._ending = {}

    def forget(self):
        """Read it anew the next time."""
        self._counts = None

    def allows(self, server):
        """Whether the end of this server alone is within the budgets."""
        if not self._budgets:
            return True
        return all(left > 0 for _key, left in self._left(server))

    def caps(self, servers):
        """How many of these servers together are: [core.model.Cap]."""
        if not self._budgets:
            return []
        members = collections.defaultdict(set)
        most = {}
        for server in servers:
            for key, left in self._left(server):
                members[key].add(server.uuid)
                most[key] = left
        return [model.Cap(frozenset(members[key]), left)
                for key, left in sorted(most.items())]

    def _left(self, server):
        """[(what it would count for, what is left of that)]."""
        if self._counts is None:
            self._read()
        if server.uuid in self._ending:
            # It counts already.
            return []
        return [(key, max(0, budget - self._counts[key])) for key, budget
                in self._budgets.get_keys(server.uuid, server.project_id)]

    def _read(self):
        self._ending = self._budgets.get_ending()
        self._budgets.learn_groups(set(self._ending))
        self._counts = collections.Counter(
            key for uuid, project_id in self._ending.items()
            for key, _budget in self._budgets.get_keys(uuid, project_id))
