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
"""Servers that are preemptible by a scheduler hint.

Nova keeps hints with the request for a server, in another database than its
records of servers, of which all are read again and again: so they are
remembered here.
"""

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.db import models


def add(database, uuids):
    """Remember that these servers are preemptible by a hint."""
    known = get(database, uuids)
    now = timeutils.utcnow()
    with database.writer() as session:
        session.add_all(models.PreemptibleServer(uuid=uuid, created_at=now)
                        for uuid in uuids if uuid not in known)


def remove(database, uuids):
    """Forget these."""
    database.write(sa.delete(models.PreemptibleServer).where(
        models.PreemptibleServer.uuid.in_(list(uuids))))


def get(database, uuids=None) -> set[str]:
    """The set of uuids that are, among the given ones if any."""
    query = sa.select(models.PreemptibleServer.uuid)
    if uuids is not None:
        query = query.where(
            models.PreemptibleServer.uuid.in_(list(uuids)))
    return set(database.scalars(query))
