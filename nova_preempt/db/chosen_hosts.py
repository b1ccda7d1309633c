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
"""Hosts that were chosen for boots, by the digests of their secrets.

Who reads the database learns no secret that still works.
"""

import hashlib
import json

import sqlalchemy as sa

from nova_preempt.core.backlog import chosen
from nova_preempt.db import backlog_models
from nova_preempt.db import retries

_CHOSEN = backlog_models.BacklogChosenHosts


@retries.retried_upsert
def keep(database, secret, choice):
    """Write down what a secret stands for.

    :param choice: a core.backlog.chosen.Choice
    """
    boot = choice.boot
    values = {
        'request_uuid': choice.request_uuid, 'number': choice.number,
        'project_id': boot.project_id, 'user_id': boot.user_id,
        'flavor_id': boot.flavor_id, 'count': boot.count,
        'hosts': json.dumps(dict(choice.hosts), sort_keys=True),
        'expires_at': choice.expires_at, 'used': choice.used}
    digest = _digest(secret)
    with database.writer() as session:
        if not session.execute(sa.update(_CHOSEN).where(
                _CHOSEN.digest == digest).values(**values)).rowcount:
            session.execute(sa.insert(_CHOSEN).values(
                digest=digest, **values))


def get(database, secret):
    """The Choice that a secret stands for, None if there is none."""
    query = sa.select(*_CHOSEN.__table__.c).where(
        _CHOSEN.digest == _digest(secret))
    with database.reader() as session:
        row = session.execute(query).one_or_none()
    return row and _choice(row)


@retries.retried
def use(database, secret):
    """Have it used; returns whether it was not used before."""
    with database.writer() as session:
        return session.execute(sa.update(_CHOSEN).where(
            _CHOSEN.digest == _digest(secret),
            _CHOSEN.used == sa.false()).values(used=True)).rowcount == 1


def of_boots(database):
    """{(uuid of the request, number of the boot): {host: how many}}."""
    with database.reader() as session:
        return {(row.request_uuid, row.number): _choice(row).hosts
                for row in session.execute(
                    sa.select(*_CHOSEN.__table__.c))}


@retries.retried
def forget(database, before):
    """Delete those that were to be used before then."""
    with database.writer() as session:
        session.execute(sa.delete(_CHOSEN).where(
            _CHOSEN.expires_at < before))


def _digest(secret):
    # JSON can have what UTF-8 has not; that is nobody's secret.
    return hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()


def _choice(row):
    return chosen.Choice(
        row.request_uuid, row.number,
        chosen.Boot(row.project_id, row.user_id, row.flavor_id, row.count),
        json.loads(row.hosts), row.expires_at, row.used)
