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
"""What requests that wait may claim by their classes."""

from nova_preempt.core.backlog import history
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import validation
from nova_preempt.db import backlog_history
from nova_preempt.db import class_servers


class Claims:
    """Of requests of the backlog, as they stand in the database.

    :param database: a nova_preempt.db.Database
    :param table: a core.classes.table.Table
    """

    def __init__(self, database, table):
        self._database = database
        self.table = table

    def clocks(self, requests):
        """{uuid: core.classes.clocks.Clocks} of these core Requests.

        Each change of a request is kept, so they are there right after a
        restart. Who was never started has waited all the time.
        """
        known = backlog_history.of(self._database, [
            request.uuid for request in requests if request.boots])
        return {request.uuid: history.clocks_of(known.get(
            request.uuid) or history.History(
                (model.Change(request.created_at, model.WAITING),),
                not_before=request.not_before)) for request in requests}

    def overheads_us(self, requests):
        """{uuid: how long it takes to get a server of it to a host}."""
        known = class_servers.overheads(self._database)
        return {request.uuid: known.get(_kind(request), self.table.overhead_us)
                for request in requests}


def _kind(request):
    """That of class_servers.ClassServer, of its first flavor."""
    return (request.alternatives[0].name,
            validation.starts_from_volume(request.body.get('server', {})))
