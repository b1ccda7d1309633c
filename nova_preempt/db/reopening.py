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
"""Opening a decision once more that has been closed, or is another's."""

import sqlalchemy as sa

from nova_preempt.db import clock
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import retries


@retries.retried
def reopen(database, uuid, owner):
    """Have an owner roll a decision back, whoever had it, or has.

    :returns: False if there is none, or its server may be built
    """
    query = (sa.update(models.Decision)
             .where(models.Decision.uuid == uuid)
             .where(models.Decision.status != decisions.DONE)
             .values(owner=owner, status=decisions.ROLLING_BACK,
                     updated_at=clock.now())
             .execution_options(synchronize_session=False))
    victims = (sa.update(models.Victim)
               .where(models.Victim.decision_uuid == uuid)
               .where(models.Victim.status == decisions.KEPT)
               .values(status=decisions.PENDING, ended_at=None)
               .execution_options(synchronize_session=False))
    with database._writer() as session:
        if session.execute(query).rowcount != 1:
            return False
        session.execute(victims)
        return True
