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
"""Requests of one second in the order they came in, and indexes of requests.

Revision ID: 0017
Revises: 0016
"""

from alembic import op
import sqlalchemy as sa

revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None

_REQUESTS = 'backlog_requests'

# {index: (table, columns)}
_CHANGED = {
    'backlog_requests_created_at_idx': (
        _REQUESTS, ['created_at', 'serial', 'uuid']),
    'backlog_requests_state_idx': (_REQUESTS, ['state', 'trust_id']),
}
_NEW = {
    'backlog_requests_trust_id_idx': (_REQUESTS, ['trust_id']),
    'backlog_boots_asked_at_idx': ('backlog_boots', ['asked_at']),
}


def upgrade():
    # An API of the version before does not name it.
    op.add_column(_REQUESTS, sa.Column(
        'serial', sa.BigInteger, nullable=False, server_default='0'))
    request = sa.table(_REQUESTS, sa.column('uuid'), sa.column('serial'))
    change = sa.table('backlog_changes', sa.column('id'),
                      sa.column('request_uuid'))
    op.execute(sa.update(request).values(serial=sa.func.coalesce(
        sa.select(sa.func.min(change.c.id))
        .where(change.c.request_uuid == request.c.uuid).scalar_subquery(),
        0)))
    for name, (table, _columns) in _CHANGED.items():
        op.drop_index(name, table)
    for name, (table, columns) in {**_CHANGED, **_NEW}.items():
        op.create_index(name, table, columns)
