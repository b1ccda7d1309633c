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
"""Clocks of servers of a class, and what it takes to get them back.

Revision ID: 0015
Revises: 0014
"""

from alembic import op
import sqlalchemy as sa

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'class_servers',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('cell_uuid', sa.String(36), nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('class_name', sa.String(64), nullable=False),
        sa.Column('flavor', sa.String(255), nullable=False),
        sa.Column('from_volume', sa.Boolean, nullable=False),
        sa.Column('kind', sa.Integer, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in (
            'running_us', 'waiting_us', 'binding_us', 'admitted_us',
            'since_us', 'last_us')),
        sa.Column('gaps', sa.Integer, nullable=False),
        sa.Column('changed_at', sa.DateTime),
        sa.Column('read_at', sa.DateTime, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8')
    op.create_index('class_servers_cell_uuid_idx', 'class_servers',
                    ['cell_uuid'])
    op.create_table(
        'class_overheads',
        sa.Column('flavor', sa.String(255), primary_key=True),
        sa.Column('from_volume', sa.Boolean, primary_key=True),
        sa.Column('mean_us', sa.BigInteger, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8')
