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
"""Leases of owners, pauses, and whose the allocations of victims were.

Revision ID: 0009
Revises: 0008
"""

from alembic import op
import sqlalchemy as sa

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'owners',
        sa.Column('name', sa.String(300), primary_key=True),
        sa.Column('started_at', sa.DateTime, nullable=False),
        sa.Column('expires_at', sa.DateTime, nullable=False),
    )
    op.create_table(
        'pauses',
        sa.Column('what', sa.String(20), primary_key=True),
        sa.Column('since', sa.DateTime, nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
        sa.Column('user_id', sa.String(255), nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('request_id', sa.String(255), nullable=False),
    )
    with op.batch_alter_table('victims') as table:
        for name in ('consumer_project_id', 'consumer_user_id'):
            table.add_column(sa.Column(name, sa.String(255), nullable=False,
                                       server_default=''))
