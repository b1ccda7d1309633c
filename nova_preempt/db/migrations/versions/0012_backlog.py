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
"""Requests that wait for room.

Revision ID: 0012
Revises: 0011
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None

_JSON = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'backlog_requests',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('user_id', sa.String(255), nullable=False),
        sa.Column('trust_id', sa.String(64), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('body', _JSON, nullable=False),
        sa.Column('compute_version', sa.String(10), nullable=False),
        sa.Column('count', sa.Integer, nullable=False),
        sa.Column('least_count', sa.Integer, nullable=False),
        sa.Column('alternatives', _JSON, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime, nullable=False),
        sa.Column('class_name', sa.String(64), nullable=False),
        sa.Column('priorities', sa.Text),
        sa.Column('ladder', sa.String(64), nullable=False),
        sa.Column('apart', sa.Boolean, nullable=False),
        sa.Column('not_before', sa.DateTime),
        sa.Column('not_after', sa.DateTime),
        sa.Column('longest_wait_s', sa.BigInteger),
        sa.Column('comes_back', sa.Boolean, nullable=False),
        sa.Column('back_until', sa.DateTime),
        sa.Column('most_returns', sa.Integer),
        sa.Column('state', sa.String(20), nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
        sa.Column('waits_for', _JSON, nullable=False),
        sa.Column('position', sa.Integer),
        sa.Column('estimate_s', sa.BigInteger),
        sa.Column('ends_servers', sa.Boolean, nullable=False),
        sa.Column('waits_since', sa.DateTime),
        sa.Column('returns', sa.Integer, nullable=False),
        sa.Column('tries', sa.Integer, nullable=False),
        sa.Column('next_try_at', sa.DateTime),
    )
    op.create_index('backlog_requests_state_idx', 'backlog_requests',
                    ['state'])
    op.create_index('backlog_requests_project_id_idx', 'backlog_requests',
                    ['project_id', 'state'])
    op.create_index('backlog_requests_created_at_idx', 'backlog_requests',
                    ['created_at', 'uuid'])
    op.create_table(
        'backlog_boots',
        _request(primary_key=True),
        sa.Column('number', sa.Integer, primary_key=True,
                  autoincrement=False),
        sa.Column('tag', sa.String(60), nullable=False),
        sa.Column('flavor_id', sa.String(255), nullable=False),
        sa.Column('count', sa.Integer, nullable=False),
        sa.Column('asked_at', sa.DateTime, nullable=False),
        sa.Column('state', sa.String(20), nullable=False),
    )
    op.create_table(
        'backlog_servers',
        sa.Column('uuid', sa.String(36), primary_key=True),
        _request(),
        sa.Column('boot', sa.Integer, nullable=False),
        sa.Column('state', sa.String(20), nullable=False),
        sa.Column('since', sa.DateTime, nullable=False),
    )
    op.create_index('backlog_servers_request_uuid_idx', 'backlog_servers',
                    ['request_uuid'])
    op.create_table(
        'backlog_changes',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer, 'sqlite'),
                  primary_key=True, autoincrement=True),
        _request(),
        sa.Column('at', sa.DateTime, nullable=False),
        sa.Column('state', sa.String(20), nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
    )
    op.create_index('backlog_changes_request_uuid_idx', 'backlog_changes',
                    ['request_uuid'])
    op.create_index('backlog_changes_at_idx', 'backlog_changes',
                    ['at', 'state'])


def _request(**kwargs):
    return sa.Column(
        'request_uuid', sa.String(36),
        sa.ForeignKey('backlog_requests.uuid', ondelete='CASCADE'),
        nullable=False, **kwargs)
