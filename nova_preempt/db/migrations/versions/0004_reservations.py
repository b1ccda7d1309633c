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
"""Reservations of hosts, and what administrators say of hosts.

Revision ID: 0004
Revises: 0003
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None

JSON_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'reservations',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime, nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('user_id', sa.String(255), nullable=False),
        sa.Column('status', sa.String(20), nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
        sa.Column('host_properties', JSON_TEXT, nullable=False),
        sa.Column('quantity', sa.Integer, nullable=False),
        sa.Column('duration_s', sa.BigInteger, nullable=False),
        sa.Column('window_start', sa.DateTime, nullable=False),
        sa.Column('window_end', sa.DateTime),
        sa.Column('start_at', sa.DateTime, nullable=False),
        sa.Column('end_at', sa.DateTime, nullable=False),
        sa.Column('end_action', sa.String(20), nullable=False),
        sa.Column('before_end_s', sa.Integer, nullable=False),
        sa.Column('ready_at', sa.DateTime),
        sa.Column('noticed_at', sa.DateTime),
        sa.Column('released_at', sa.DateTime),
        sa.Index('reservations_status_idx', 'status'),
        sa.Index('reservations_project_id_idx', 'project_id'),
        sa.Index('reservations_created_at_idx', 'created_at', 'uuid'),
    )
    op.create_table(
        'reservation_hosts',
        sa.Column('reservation_uuid', sa.String(36),
                  sa.ForeignKey('reservations.uuid', ondelete='CASCADE'),
                  primary_key=True),
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('start_at', sa.DateTime, nullable=False),
        sa.Column('end_at', sa.DateTime, nullable=False),
        sa.Column('status', sa.String(20), nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
        sa.Index('reservation_hosts_host_idx', 'host', 'start_at'),
    )
    op.create_table(
        'reservable_hosts',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('reservable', sa.Boolean),
        sa.Column('extra', JSON_TEXT, nullable=False),
    )
    op.create_table(
        'hidden_properties',
        sa.Column('name', sa.String(255), primary_key=True),
    )
    op.create_table(
        'reservation_limits',
        sa.Column('project_id', sa.String(255), primary_key=True),
        sa.Column('limits', sa.Text, nullable=False),
    )
    counters = op.create_table(
        'counters',
        sa.Column('name', sa.String(20), primary_key=True),
        sa.Column('value', sa.BigInteger, nullable=False),
    )
    op.bulk_insert(counters, [{'name': 'calendar', 'value': 0}])
