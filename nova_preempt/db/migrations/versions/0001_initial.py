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
"""The first tables.

Revision ID: 0001
Revises:
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


JSON_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'decisions',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime, nullable=False),
        sa.Column('owner', sa.String(300), nullable=False),
        sa.Column('status', sa.String(20), nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
        sa.Column('request_id', sa.String(255), nullable=False),
        sa.Column('operation', sa.String(20), nullable=False),
        sa.Column('server_uuid', sa.String(36), nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('user_id', sa.String(255), nullable=False),
        sa.Column('host', sa.String(255), nullable=False),
        sa.Column('provider_uuid', sa.String(36), nullable=False),
        sa.Column('cost_us', sa.BigInteger, nullable=False),
        sa.Column('record', JSON_TEXT, nullable=False),
        sa.Index('decisions_status_idx', 'status'),
        sa.Index('decisions_server_uuid_idx', 'server_uuid'),
        sa.Index('decisions_request_id_idx', 'request_id'),
    )
    op.create_table(
        'victims',
        sa.Column('decision_uuid', sa.String(36),
                  sa.ForeignKey('decisions.uuid', ondelete='CASCADE'),
                  primary_key=True),
        sa.Column('server_uuid', sa.String(36), primary_key=True),
        sa.Column('status', sa.String(20), nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('user_id', sa.String(255), nullable=False),
        sa.Column('flavor', sa.String(255), nullable=False),
        sa.Column('cost_us', sa.BigInteger, nullable=False),
        sa.Column('allocations', JSON_TEXT, nullable=False),
        sa.Index('victims_server_uuid_idx', 'server_uuid'),
    )
    op.create_table(
        'preemptible_servers',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('created_at', sa.DateTime, nullable=False),
    )
